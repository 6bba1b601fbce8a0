package output_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"docket/internal/programs/cli/output"
)

const list = `{"entries":[{"id":"a1","path":"=cmd|' /C calc'!A0","n":-5,"at":null,"in":{"z":1,"a":[true]}},{"id":"b2","path":"a,\"b\u202e\nc","extra":"@x"}],"next":"cur","freshness":"FRESH"}`

func written(t *testing.T, f output.Format, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := output.Write(&b, f, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite_Envelope(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		list:                                   `{"items":[{"id":"a1"`,
		`{"since":"x","lines":[{"name":"p"}]}`: `{"items":[{"name":"p"}],"next":"","since":"x"}`,
		`{"decisions":[],"next":null,"behind":0}`: `{"items":[],"next":"","behind":0}`,
		`[{"range":1}]`: `{"items":[{"range":1}],"next":""}`,
		`{"decision_id":"x","reasons":[{"a":"<"}]}`: `{"decision_id":"x","reasons":[{"a":"<"}]}`,
	} {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(written(t, output.JSON, text))); err != nil || !strings.HasPrefix(compact.String(), want) {
			t.Errorf("%v: %s", err, compact.String())
		}
	}
	if got := written(t, output.JSON, list); !strings.HasSuffix(strings.Join(strings.Fields(got), ""), `"next":"cur","freshness":"FRESH"}`) {
		t.Error(got)
	}
	if got := written(t, output.CSV, "Usage:\n  docket"); got != "Usage:\n  docket" {
		t.Errorf("help became %q", got)
	}
}

func TestWrite_Forms(t *testing.T) {
	t.Parallel()
	if got := written(t, output.ID, list); got != "a1\nb2\n" {
		t.Errorf("%q", got)
	}
	if got := written(t, output.Lines, list); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, `{"id":"a1",`) || strings.Contains(got, "\u202e") {
		t.Errorf("%q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(written(t, output.CSV, list))).ReadAll()
	if err != nil || len(rows) != 3 || strings.Join(rows[0], " ") != "id path n at in extra" {
		t.Fatal(rows, err)
	}
	if rows[1][1] != `'=cmd|' /C calc'!A0` || rows[1][2] != "-5" || rows[1][3] != "" || rows[1][4] != `{"z":1,"a":[true]}` || rows[2][5] != "'@x" || rows[2][1] != `a,"b\u202e\nc` {
		t.Errorf("%q", rows)
	}
	var back struct {
		Items []map[string]any
		Next  string
	}
	text := written(t, output.YAML, list)
	if err := yaml.Unmarshal([]byte(text), &back); err != nil || back.Next != "cur" || back.Items[1]["path"] != "a,\"b\u202e\nc" || strings.Contains(text, "\u202e") {
		t.Errorf("%v\n%s", err, text)
	}
	var none *output.NoIDsError
	if err := output.Write(&bytes.Buffer{}, output.ID, []byte(`{"failed":true}`)); !errors.As(err, &none) {
		t.Error(err)
	}
	if got := written(t, output.CSV, `{"entries":[]}`) + written(t, output.ID, `{"entries":[]}`); got != "" {
		t.Errorf("%q", got)
	}
}

// TestLacks_OtherLists: a table of one list says that the answer has another one.
func TestLacks_OtherLists(t *testing.T) {
	t.Parallel()
	const answer = `{"lines":[{"path":"p"}],"horizons":[{"topic":"a"},{"topic":"b"}],"refused":[],"looked":["rows"]}`
	for _, f := range []output.Format{output.CSV, output.ID, output.Lines} {
		if got := output.Lacks(f, []byte(answer)); !slices.Equal(got, []string{"horizons: 2 left out; -o json has them"}) {
			t.Errorf("%s: %q", f, got)
		}
	}
	if got := output.Lacks(output.JSON, []byte(answer)); got != nil {
		t.Errorf("%q", got)
	}
}

// TestCSV_NoFormula: whatever a stranger writes, no cell begins as a formula does, and no text controls a terminal.
func TestCSV_NoFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \x{a0}\x{3000}]{0,2}[=+@\-\t\r\n＝]{1,3}.{0,9}`)).Draw(t, "value")
		text, err := json.Marshal(map[string]any{"entries": []any{map[string]string{"v": value}}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := output.Write(&b, output.CSV, text); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			if cell := strings.TrimLeft(row[0], " \u00a0\u3000"); cell != "" && strings.ContainsRune("=+-@\t\r＝＋－＠", []rune(cell)[0]) || strings.ContainsFunc(row[0], func(r rune) bool { return r < ' ' || r == 0x202e }) {
				t.Fatalf("%q became %q", value, row[0])
			}
		}
	})
}
