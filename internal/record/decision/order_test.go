package decision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/sample"
)

// joined is the text of all pieces together.
func joined(raw []byte, pieces []Piece) []byte {
	if pieces == nil {
		return raw
	}
	var all []byte
	for _, p := range pieces {
		stretch, comma := p.Of(raw)
		if comma {
			all = append(all, ',')
		}
		all = append(all, stretch...)
	}
	return all
}

// checkPieces checks the pieces of a decision: they are the same JSON in jsonb's order, in as few stretches as
// possible.
func checkPieces(t *testing.T, log Log) {
	t.Helper()
	all := joined(log.Raw, log.Pieces)
	if !reflect.DeepEqual(meaning(t, log.Raw), meaning(t, all)) {
		t.Fatalf("%q became %q", log.Raw, all)
	}
	for i := 1; i < len(log.Pieces); i++ {
		p, next := log.Pieces[i-1], log.Pieces[i]
		end, start := int(p>>16), int(next&mostRaw)
		if _, comma := next.Of(log.Raw); end <= start && string(log.Raw[end:start]) == map[bool]string{true: ","}[comma] {
			t.Fatalf("%q: pieces %d and %d are one", log.Raw, i-1, i)
		}
	}
	if len(log.Raw) > mostRaw || log.Unfaithful != nil {
		if log.Pieces != nil {
			t.Fatalf("%d pieces of %d bytes", len(log.Pieces), len(log.Raw))
		}
		return
	}
	o := objects{t: t, text: all, dec: json.NewDecoder(bytes.NewReader(all))}
	o.dec.UseNumber()
	if o.value(0); o.nodes <= mostFew && o.disorder != "" {
		t.Fatalf("%q became %q: %s", log.Raw, all, o.disorder)
	}
}

func meaning(t *testing.T, text []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil || dec.More() {
		t.Fatalf("%q is not JSON: %v", text, err)
	}
	return v
}

// objects reads JSON by the standard library and finds objects that should be in jsonb's order and are not.
type objects struct {
	t        *testing.T
	text     []byte
	dec      *json.Decoder
	nodes    int
	disorder string
}

func (o *objects) token() json.Token {
	token, err := o.dec.Token()
	if err != nil {
		o.t.Fatal(err)
	}
	return token
}

func (o *objects) value(depth int) {
	switch o.token() {
	case json.Delim('['):
		for o.dec.More() {
			o.value(depth)
		}
		o.token()
	case json.Delim('{'):
		var keys []string
		asWritten := true
		for o.dec.More() {
			key := o.token().(string)
			asWritten = asWritten && bytes.HasSuffix(o.text[:o.dec.InputOffset()], []byte(`"`+key+`"`))
			keys = append(keys, key)
			o.value(depth + 1)
		}
		o.token()
		if o.nodes += len(keys) + 2; asWritten && depth < deepestSorted && len(keys) <= mostMembers && !slices.IsSortedFunc(keys, jsonbOrder) {
			o.disorder = fmt.Sprintf("%q are not in order", keys)
		}
	}
}

func jsonbOrder(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// thrice decodes a decision until its shape is learned, and returns the last result.
func thrice(t *testing.T, d *Decoder, value []byte) Part {
	t.Helper()
	var last Part
	for i := range 4 + mostTrust {
		record, refusal := d.Decode(value, limit)
		if refusal != nil || len(record.Parts) != 1 {
			t.Fatalf("%q: %v", value, refusal)
		}
		if i > 0 && !reflect.DeepEqual(last, record.Parts[0]) {
			t.Fatalf("%q is read otherwise the next time: %s", value, cmp.Diff(last, record.Parts[0], fields))
		}
		last = record.Parts[0]
	}
	return last
}

func TestPieces_InJsonbOrder(t *testing.T) {
	t.Parallel()
	values := append(sample.DecisionLogs(), Benchmarked()[:50]...)
	long := strings.Repeat("k", 130)
	for _, member := range []string{
		`"x":{"b":1,"a":2}`, `"x":{"bb":1,"a":2,"b":{"z":1,"y":[{"d":1,"c":2},{"b":{"bb":1,"a":1},"a":[]}]}}`, `"x":[[{"b":1,"a":{}}],{}]`,
		`"x" : { "bb" : 1 , "a" : [ 2 , { "d" : 1 , "c" : 3 } ] , "b" : { } }`, "\"x\":\n{\n\t\"b\":1,\r\n\t\"a\":2\n}\n", `"é":1,"z":2,"ö":{"ü":1,"uu":2,"ä":3}`,
		`"x":{"\u0062":1,"a":{"d":1,"c":2}}`, `"x":{"a":1,"\u0061":2,"":3}`, `"x":{"\u0061":1,"a":2}`, `"x":{"bb":0,"a":1,"b":2,"a":3,"a":4}`, `"x":{"a":1,"a":2}`,
		`"":{"":{"":1,"b":1,"a":2}}`, `"x":{"12345678":1,"12345677":2,"1234567":3,"1234561":4}`, `"x":{"` + long + `b":1,"` + long + `a":2,"` + long + `":3}`,
		`"x":{"b` + long + `":1,"c` + long[1:] + `":2,"a` + long + `":3,"d` + long[4:] + `":4,"e` + long[5:] + `":5}`,
		`"x":{` + strings.Join(backwards(mostMembers), ",") + `}`, `"x":{` + strings.Join(backwards(mostMembers+1), ",") + `}`, strings.Join(backwards(mostMembers+1), ","),
		`"x":[` + strings.Repeat(`{"b":1,"a":2},`, 300) + `0]`, `"x":"` + strings.Repeat("x", mostRaw-80) + `"`, `"x":"` + strings.Repeat("x", mostRaw) + `"`,
		`"x":` + strings.Repeat(`{"b":1,"a":`, 20) + "1" + strings.Repeat("}", 20), `"a,b":",","x":{"c}":"}","a":"{"}`,
	} {
		values = append(values, []byte(good(member)), []byte("{"+member+","+good()[1:]))
	}
	var d Decoder
	d.Begin(10)
	for _, value := range values {
		part := thrice(t, &d, value)
		if part.Err != nil {
			t.Fatalf("%q: %v", value, part.Err)
		}
		checkPieces(t, part.Log)
	}
}

// backwards makes n members in reverse order.
func backwards(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[n-1-i] = fmt.Sprintf(`"k%03d":%d`, i, i)
	}
	return all
}

func TestPieces_NoneIfInOrder(t *testing.T) {
	t.Parallel()
	const value = `{"x":[{"a":1,"b":{"c":{}}}],"path":"a","result":{"allow":true},"timestamp":"2026-11-21T02:00:39Z","decision_id":"d"}`
	var d Decoder
	d.Begin(1)
	if part := thrice(t, &d, []byte(value)); part.Err != nil || part.Log.Pieces != nil {
		t.Errorf("%v, %d pieces", part.Err, len(part.Log.Pieces))
	}
}

func TestPieces_FewInTheBenchmark(t *testing.T) {
	t.Parallel()
	for _, value := range Benchmarked()[:100] {
		if n := len(only(t, string(value)).Log.Pieces); n < 10 || n > 23 {
			t.Fatalf("%s: %d pieces", value, n)
		}
	}
}

func TestPieces_ValidUntilTheNextBegin(t *testing.T) {
	t.Parallel()
	var d Decoder
	for range 2 {
		d.Begin(1)
		var all []Log
		for _, value := range Benchmarked()[:500] {
			record, refusal := d.Decode(value, limit)
			if refusal != nil {
				t.Fatal(refusal)
			}
			all = append(all, record.Parts[0].Log)
			pieces := len(d.scanner.slab.pieces)
			if _, refusal := d.Decode([]byte("["+string(value)+",{]"), limit); refusal == nil {
				t.Fatal("it was not refused")
			}
			if n := len(d.scanner.slab.pieces); n > pieces {
				t.Fatalf("%d pieces of a refused record are kept", n-pieces)
			}
		}
		for _, log := range all {
			checkPieces(t, log)
		}
	}
	d.scanner.slab.room(mostPieces + 1)
	if d.Begin(1); d.scanner.slab.pieces != nil {
		t.Error("the memory of an uncommon batch is kept")
	}
}

// FuzzPieces: the pieces of any decision are the same JSON in jsonb's order.
func FuzzPieces(f *testing.F) {
	for _, value := range []string{`{"b":1,"a":2}`, `[{"bb":1,"a":{"d":[],"c":{}}}]`, `{"a":1,"\u0061":2,"a":3}`, "{ \"b\" : 1 ,\n\"a\" : 2 }", `1,"w":{"é":1,"e":2}`} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, member []byte) {
		record, refusal := Decode([]byte(good(`"x":`+string(member))), limit)
		if refusal == nil && len(record.Parts) == 1 && record.Parts[0].Err == nil {
			checkPieces(t, record.Parts[0].Log)
		}
	})
}
