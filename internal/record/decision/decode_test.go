package decision

import (
	"strings"
	"testing"
)

// told renders the result for a record: "refused: reason", or a word for each part.
func told(value []byte, maxBytes int64) string {
	record, refusal := Decode(value, maxBytes)
	if refusal != nil {
		return "refused: " + string(refusal.Reason)
	}
	words := make([]string, len(record.Parts))
	for i, part := range record.Parts {
		words[i] = part.Log.ID
		if part.Err != nil {
			words[i] = string(part.Err.Reason)
			if part.Log.ID != "" || part.Log.Raw != nil {
				words[i] += " with a log"
			}
		}
		if part.Index != i {
			words[i] += " out of place"
		}
	}
	if record.Sole {
		words = append(words, "sole") //nolint:makezero // behind those that were filled by index
	}
	return strings.Join(words, " ")
}

func TestDecode_Forms(t *testing.T) {
	t.Parallel()
	d1 := good()
	d2 := strings.Replace(d1, "d1", "d2", 1)
	pretty := "{\n  \"decision_id\": \"d1\",\r\n\t\"timestamp\": \"2026-11-21T02:00:39Z\"\n}\n"
	const bom = "\ufeff"
	for name, c := range map[string]struct{ value, want string }{
		"nothing":                                  {"", "refused: empty"},
		"white space":                              {" \t\r\n", "refused: empty"},
		"other white space is not JSON's":          {"\v", "refused: syntax"},
		"empty array":                              {"[]", "refused: empty"},
		"empty array, spaced":                      {" [ \n] ", "refused: empty"},
		"empty array and trailing bytes":           {"[]x", "refused: syntax"},
		"one object":                               {d1, "d1 sole"},
		"one object in white space":                {"\r\n " + d1 + "\t\n", "d1 sole"},
		"one object over many lines":               {pretty, "d1 sole"},
		"array of one":                             {"[" + d1 + "]", "d1 sole"},
		"array":                                    {" [" + d1 + " ,\n" + d2 + "] ", "d1 d2"},
		"array over lines is no lines":             {"[" + d1 + ",\n" + d2 + "\n", "refused: syntax"},
		"array with trailing comma":                {"[" + d1 + ",]", "refused: syntax"},
		"array with leading comma":                 {"[," + d1 + "]", "refused: syntax"},
		"array without comma":                      {"[" + d1 + d2 + "]", "refused: syntax"},
		"array closed as an object":                {"[" + d1 + "}", "refused: syntax"},
		"array and trailing bytes":                 {"[" + d1 + "]" + d2, "refused: syntax"},
		"array and trailing line":                  {"[" + d1 + "]\n" + d2, "wrong_type d2"},
		"array with a syntax error":                {"[" + d1 + `,{"a":01}]`, "refused: syntax"},
		"array with other faults":                  {"[{}," + d1 + `,3,null,[` + d1 + `],` + good(`"a":1,"a":2`) + "," + good(`"a":"\u0000"`) + "," + good(`"path":1`) + "," + d2 + "]", "missing_field d1 wrong_type wrong_type wrong_type duplicate_key d1 wrong_type d2"},
		"lines":                                    {d1 + "\n" + d2, "d1 d2"},
		"lines ended by CRLF":                      {d1 + "\r\n" + d2 + "\r\n", "d1 d2"},
		"lines with blank ones":                    {"\n" + d1 + "\n \t\n\r\n" + d2 + "\n\n", "d1 d2"},
		"lines that are indented, but one":         {"  " + d1 + "\n" + d2, "d1 d2"},
		"lines that are all indented":              {"  " + d1 + "\n " + d2, "d1 d2"},
		"indented lines with a bad one first":      {"  {\"a\"\n\t" + d2 + "\r\n", "syntax d2"},
		"torn, with objects that are no decisions": {"{\n  \"a\":\n  {\"b\":1}\n  ,\n  {}\n", "refused: syntax"},
		"lines with a bad one":                     {d1 + "\n{\"a\"\n" + d2, "d1 syntax d2"},
		"lines with a bad one first":               {"x\n" + d1, "syntax d1"},
		"lines with two on one line":               {d1 + d2 + "\n" + d2, "syntax d2"},
		"lines with a comma behind":                {d1 + ",\n" + d2, "syntax d2"},
		"lines with other faults":                  {"{}\n3\n[" + d1 + "]\nnull\n" + d1, "missing_field wrong_type wrong_type wrong_type d1"},
		"lines: a complete object need not be one": {"}\n{}", "syntax missing_field"},
		"lines of scalars":                         {"3\n\"x\"\ntrue", "refused: syntax"},
		"lines with other white space":             {d1 + "\n\v" + d2 + "\n" + d2 + "\u00a0", "d1 syntax syntax"},
		"byte-order mark":                          {bom + d1, "refused: syntax"},
		"byte-order mark before lines":             {bom + d1 + "\n" + d2, "syntax d2"},
		"no line break, two objects":               {d1 + d2, "refused: syntax"},
		"spaces between two objects":               {d1 + " " + d2, "refused: syntax"},
		"CR alone ends no line":                    {d1 + "\r" + d2, "refused: syntax"},
		"pretty objects one after another":         {pretty + pretty, "refused: syntax"},
		"torn":                                     {d1[:len(d1)-1], "refused: syntax"},
		"torn, over many lines":                    {pretty[:len(pretty)-2], "refused: syntax"},
		"no JSON":                                  {"hello", "refused: syntax"},
		"a zero byte":                              {"\x00", "refused: syntax"},
		"a zero byte behind":                       {d1 + "\x00", "refused: syntax"},
		"a number":                                 {"3", "wrong_type sole"},
		"a string":                                 {`"x"`, "wrong_type sole"},
		"true":                                     {"true", "wrong_type sole"},
		"the text null is not Kafka's null":        {"null", "wrong_type sole"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := told([]byte(c.value), limit); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := told(nil, limit); got != "refused: empty" {
		t.Errorf("null: got %q", got)
	}
}

func TestDecode_ValueIsTheExactBytes(t *testing.T) {
	t.Parallel()
	a, b := good(`"x": [ 1 , 2 ]`), good(`"y":{}`)
	for name, c := range map[string]struct {
		value string
		want  []string
	}{
		"one":                              {" \n" + a + "\r\n", []string{a}},
		"array":                            {"[ " + a + " ,\t" + b + "\n,  [1] , 1.5e3 ]", []string{a, b, "[1]", "1.5e3"}},
		"line with more behind its object": {a + " " + b + " \n" + b + ",\n" + a, []string{a + " " + b, b + ",", a}},
		"lines":                            {a + " \r\n\t" + b + "\n\n  {\"torn\"  \n" + a, []string{a, b, `{"torn"`, a}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record, refusal := Decode([]byte(c.value), limit)
			if refusal != nil || len(record.Parts) != len(c.want) {
				t.Fatalf("got %d parts, %v; want %d", len(record.Parts), refusal, len(c.want))
			}
			for i, part := range record.Parts {
				if string(part.Value) != c.want[i] {
					t.Errorf("part %d: got %q, want %q", i, part.Value, c.want[i])
				}
				if part.Err == nil && string(part.Log.Raw) != c.want[i] {
					t.Errorf("part %d: raw is %q, want %q", i, part.Log.Raw, c.want[i])
				}
				if cap(part.Value) != len(part.Value) {
					t.Errorf("part %d: appending to its value would write into its neighbour", i)
				}
			}
		})
	}
}

func TestDecode_ValueSharesTheRecord(t *testing.T) {
	t.Parallel()
	value := []byte(" " + good())
	record, _ := Decode(value, limit)
	if &record.Parts[0].Value[0] != &value[1] || &record.Parts[0].Log.Raw[0] != &value[1] {
		t.Error("value or raw was copied")
	}
}

func TestTooLarge_CountsEveryByte(t *testing.T) {
	t.Parallel()
	value := good()
	size := int64(len(value))
	for _, c := range []struct {
		maxBytes int64
		want     string
	}{{size, "d1 sole"}, {size - 1, "refused: too_large"}, {0, "refused: too_large"}, {-1, "refused: too_large"}} {
		if got := told([]byte(value), c.maxBytes); got != c.want {
			t.Errorf("limit %d: got %q, want %q", c.maxBytes, got, c.want)
		}
	}
}

func TestRefusal_NeverQuotesThePayload(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, value := range []string{
		secret, good(`"` + secret + `":1,"` + secret + `":2`), strings.Replace(good(), "d1", secret+`\u0000`, 1),
		good(`"path":["` + secret + `"]`), `{"timestamp":"` + secret + `"}`,
		`{"decision_id":"` + secret + `","timestamp":"` + secret + `"}`,
	} {
		record, refusal := Decode([]byte(value), limit)
		if refusal == nil {
			refusal = record.Parts[0].Err
		}
		if refusal == nil || strings.Contains(refusal.Error(), secret) {
			t.Errorf("%s: got %v", value, refusal)
		}
	}
}
