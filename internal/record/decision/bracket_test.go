package decision

import (
	"strings"
	"testing"
)

// A line that begins with a bracket is refused alone, also if it is the first.
func TestDecode_LinesBehindBracket(t *testing.T) {
	t.Parallel()
	d1 := good()
	d2 := strings.Replace(d1, "d1", "d2", 1)
	for first, reason := range map[string]string{
		`[oops`: "syntax", `[2024-05-01] starting`: "syntax", `[INFO] it's "odd`: "syntax", `[`: "", `[]`: "wrong_type", `[1,2]`: "wrong_type", ` [ ] `: "wrong_type",
		`[] []`: "syntax", `[1,2],`: "syntax", `["torn`: "syntax", `[1.`: "syntax", `[tru`: "syntax", `[{"decision_id":"x","timesta`: "syntax", `["\u00`: "syntax",
		"[\"\xc3": "syntax", `[{"a":01},`: "syntax", `[` + d1 + `]`: "wrong_type", `[` + d1: "", `[1,2`: "", `[1,`: "", `[{"a":`: "", `[{"a"`: "",
		"[" + strings.Repeat("0,", MaxDecisions) + "0]": "wrong_type", strings.Repeat("[", 10_001): "syntax",
	} {
		want := reason + " d1 d2"
		if reason == "" { // an array may begin like this, so it is one
			want = "refused: syntax"
		}
		for _, form := range []string{first + "\n" + d1 + "\n" + d2, "\n \r\n" + first + "\r\n\n" + d1 + "\r\n \n  " + d2 + "\n\n"} {
			if got := told([]byte(form), limit); got != want {
				t.Errorf("%.40q: got %.80q, want %q", form, got, want)
			}
			if got := told(zip(t, form), limit); got != want {
				t.Errorf("gzip of %.40q: got %.80q, want %q", form, got, want)
			}
			if got := OnLines([]byte(form)); got != (reason != "") {
				t.Errorf("%.40q: on lines %v", form, got)
			}
		}
	}
}

// All lines count alone behind the first.
func TestDecode_BadLinesBehindBracket(t *testing.T) {
	t.Parallel()
	d1 := good()
	d2 := strings.Replace(d1, "d1", "d2", 1)
	for value, want := range map[string]string{
		"[oops\n" + d1:                             "syntax d1",
		"[oops,\n" + d1 + "\n" + d2:                "syntax d1 d2",
		"[]\n[oops\n" + d1 + "\n]\n3\n" + d2:       "wrong_type syntax d1 syntax wrong_type d2",
		"[oops\n" + d1 + "\n" + d2 + ",\n{\n" + d1: "syntax d1 syntax syntax d1",
		"[oops\n{}\n":                              "syntax missing_field",
		"[oops\n  " + d1 + "\n":                    "syntax d1",
		"[oops\n  {}\n":                            "refused: syntax",
		"[oops\n" + d1 + d2 + "\n":                 "refused: syntax",
		"[oops\n3\n[]\n":                           "refused: syntax",
		"[oops\n":                                  "refused: syntax",
		"[]\n\n":                                   "refused: empty",
		"[]x\n":                                    "refused: syntax",
		"[1]\n[2]\n":                               "refused: syntax",
		"[" + strings.Repeat("0,", MaxDecisions) + "0]\n": "refused: too_large",
	} {
		if got := told([]byte(value), limit); got != want {
			t.Errorf("%.80q: got %q, want %q", value, got, want)
		}
	}
}

// An array over many lines is never read as lines, torn or with a syntax error anywhere.
func TestDecode_BrokenArrayOverLines(t *testing.T) {
	t.Parallel()
	d := good()
	torn := d[:len(d)-5]
	for _, value := range []string{
		"[\n" + d + ",\n" + d + ",\n" + torn,
		"[\n" + d + ",\n" + d + ",\n",
		"[\n" + d + ",\n" + d + "\n",
		"[\n" + d + "\n,\n" + d + "\n,\n" + d + "\n",
		"[\n" + d + "\n," + d + "\n",
		"[\n" + d + "\n," + d + "\n," + torn,
		"[" + d + ",\n" + d + "\n",
		"[" + d + "\n," + d + "\n," + torn + "\n", // as OPA writes it, torn
		"[" + torn + "\n," + d + "\n," + d + "\n]",
		"[" + torn + "\n,\n" + d + "\n,\n" + d + "\n]",
		"[{\"a\":01},\n" + d + "\n]",
		"[{\"a\":01},\n" + d + "\n",
		"[{\"a\":01}\n,\n" + d + "\n,\n" + d + "\n]",
		"[{\"a\":01,\"b\":\n" + d + "\n}]",
		"[{\"a\":01,\"b\":[\n" + d + "\n]}]",
		"[{\"a\":01},[\n\n\n" + d + "\n\n,\n" + d + "]]",
		"[oops,\n" + d + "\n,\n" + d + "\n]",
		"[oops\n" + d + "\n]",
		"[\noops\n" + d + "\n" + d + "\n",
		"[\n" + d + "\n" + d + "\n" + d + "\n]",
		"[" + d + "\n" + d + "\n" + d + "\n]",
		"[\n" + d + "\n]\n" + d + "\n" + d,
		"[\n]\n" + d + "\n" + d,
		"[{\"decision_id\":\n" + d + "\n" + d + "\n",
	} {
		if got := told([]byte(value), limit); got != "refused: syntax" {
			t.Errorf("%q: got %q", value, got)
		}
		if OnLines([]byte(value)) || OnLines([]byte("["+d+",\n"+d+"\n,\n"+d+"\n]")) {
			t.Errorf("%q: on lines", value)
		}
	}
}

// Each portion sees the form that the first saw, and nothing of the array that was tried is left.
func TestDecodeSome_LinesBehindBracket(t *testing.T) {
	t.Parallel()
	d := good(`"b":1,"a":2`)
	value := []byte("[" + d + "," + d + "," + d + "] x\n" + d + "\n" + d + "\n3\n")
	var dec Decoder
	dec.Begin(10)
	for from, want := range []Reason{Syntax, "", "", WrongType} {
		before := len(dec.scanner.slab.pieces)
		read, refused := dec.DecodeSome(value, limit, from, 1)
		if refused != nil || read.Count != 4 || len(read.Parts) != 1 || read.Parts[0].Index != from {
			t.Fatalf("from %d: %+v, %v", from, read, refused)
		}
		part := read.Parts[0]
		if got := part.Err; (got == nil) != (want == "") || got != nil && got.Reason != want {
			t.Errorf("from %d: %v", from, got)
		}
		if part.Err != nil && (part.Log.ID != "" || len(dec.scanner.slab.pieces) != before) {
			t.Errorf("from %d: a log or pieces are left", from)
		}
		if from == 0 && (string(part.Value) != "["+d+","+d+","+d+"] x" || part.Err.Offset != len(part.Value)-1) {
			t.Errorf("the fault of %q is at %d", part.Value, part.Err.Offset)
		}
	}
}
