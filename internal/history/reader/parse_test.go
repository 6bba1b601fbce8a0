package reader_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"docket/internal/history/reader"
)

// byStandard is [reader.Parsed] by encoding/json.
func byStandard(t testing.TB, raw []byte) (string, bool) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "", false
	}
	if _, err := d.Token(); err != io.EOF {
		return "", false
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(shortened(v)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n"), true
}

// shortened has each number as it is shown.
func shortened(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(reader.Shortest(v.String()))
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = shortened(v[k])
		}
	}
	return v
}

var values = []string{
	`{}`, `[]`, `null`, ` true `, `false`, `""`, `0`, `-0.5e+7`, `1e400`, `12.`, `01`, `-`, `1e`, `.5`, `+1`, `nul`, `tru`, `[1,2,[3]]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `]`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a":1 "b":2}`,
	`{"b":1,"a":2,"c":3}`, `{"a":1,"b":2,"a":3,"a":4}`, `{"z":{"b":1,"a":[{"y":1,"x":null}]},"aa":1,"b":"\u00e9\ud83d\ude00\ud800 \n\\\"/\/"}`, `"\q"`, `"\u12"`, `"a`, "\"a\nb\"", "\"\x00\"", "\"\xff\xc3\"", `{"\u0061":1,"a":2}`,
	"\ufeff1", `1 2`, `[1]x`, ``, ` `, `{"k10":1,"k9":2,"k1":3,"k":4}`, `0.` + strings.Repeat("0", 60) + `1`, strings.Repeat("1", 60), `1` + strings.Repeat("0", 60),
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), strings.Repeat("[", 100_000),
}

func sameAsStandard(t testing.TB, raw []byte) {
	t.Helper()
	got, ok := reader.Parsed(raw)
	want, valid := byStandard(t, raw)
	if ok != valid || got != want {
		t.Errorf("%.300q is read as %.300q, %v; want %.300q, %v", raw, got, ok, want, valid)
	}
}

func TestParse_ReadsAsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range values {
		sameAsStandard(t, []byte(text))
	}
	var b strings.Builder // in the order of jsonb: by length, then by bytes
	for i := range 5000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	sameAsStandard(t, []byte(`{"":0`+b.String()+`}`))
	sameAsStandard(t, []byte(`{"":0`+b.String()+b.String()+`}`))
}

func FuzzParse(f *testing.F) {
	for _, text := range values {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) { sameAsStandard(t, raw) })
}
