package decision

import (
	"strconv"
	"strings"
	"testing"
)

func TestSyntax_IsStrict(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"a":01`, `"a":-`, `"a":-01`, `"a":+1`, `"a":.5`, `"a":1.`, `"a":1.e3`, `"a":1e`, `"a":1e+`, `"a":0x1`, `"a":NaN`,
		`"a":Infinity`, `"a":-Infinity`, `"a":1_000`, `"a":1 2`, `"a":1a`, `"a":--1`, `"a":1.2.3`, `"a":1e1.5`,
		`"a":tru`, `"a":True`, `"a":truex`, `"a":nul`, `"a":nullnull`, `"a":undefined`, `"a":`, `"a"`, `a:1`, `'a':1`, `1:1`, `null:1`,
		`"a":'b'`, `"a":"b`, `"a":"\a"`, `"a":"\u12"`, `"a":"\u12G4"`, `"a":"\U0041"`, `"a":"\x41"`, `"a":"\'"`, `"a":"\u+123"`,
		"\"a\":\"\t\"", "\"a\":\"\n\"", "\"a\":\"\x00\"", "\"a\":\"\x1f\"", "\"a\":\"1234567\x1f\"", "\"\x01\":1",
		`"a":[1,]`, `"a":[,1]`, `"a":[1 2]`, `"a":[1}`, `"a":{"b":1]`, `"a":{"b":1,}`, `"a":{"b"}`, `"a":{,}`, `"a":[`, `"a":{`, `"a":]`,
		`"a":1,`, `,"a":1`, `"a":1,,"b":2`, `"a"::1`, `"a":1;`, `"a":1//c`, `"a":/**/1`,
		"\"a\":\"\xff\"", "\"a\":\"\xc0\x80\"", "\"a\":\"\xed\xa0\x80\"", "\"a\":\"\xf4\x90\x80\x80\"", "\"a\":\"\xe2\x82\"", "\"\xff\":1",
		"\"a\":\"1234567\xff\"", "\"a\":\xa01", "\"a\":\u00a01", "\"a\":\ufeff1",
		`"labels":{"id":}`, `"labels":{"id":1,}`, `"labels":{"id" 1}`, `"labels":{`, `"result":{"allow":tru}`, `"result":{"a":1 "b":2}`,
		`"result":{]`, `"labels":{"a":1]`,
	} {
		for _, value := range []string{good(member), good(member, `"behind":"by far enough"`)} {
			if got := reasonOf(t, value); got != Syntax {
				t.Errorf("%q: got %q, want syntax", value, got)
			}
		}
	}
	for _, member := range []string{
		`"a":0`, `"a":-0`, `"a":-0.0e-0`, `"a":1E+2`, `"a":1.50e00`, `"a":[]`, `"a":{}`, `"a":[[],{},[{}]]`, `"a":{"":{"":[]}}`,
		`"a" : [ 1 , { "b" : null , "c" : [ ] } ]`, `"a":"\"\\\/\b\f\n\r\t\u0041\uD83D\uDE00"`, "\"a\":\"\x7f\u0080\u20ac\U0010ffff\ufffe\"",
		`"":1`, "\"a\"\n:\r\n1\t", `"labels":{}`, `"labels" : { "id" : 1 }`, `"result":{ }`,
	} {
		if got := reasonOf(t, good(member)); got != "" {
			t.Errorf("%q: refused as %q", member, got)
		}
	}
}

func TestSyntax_Depth(t *testing.T) {
	t.Parallel()
	nested := func(opening, closing string, inside int) string {
		return good(`"result":` + strings.Repeat(opening, inside) + "1" + strings.Repeat(closing, inside))
	}
	for name, c := range map[string]struct {
		value string
		want  Reason
	}{
		"arrays, 10,000":                    {nested("[", "]", 9_999), ""},
		"arrays, 10,001":                    {nested("[", "]", 10_000), Syntax},
		"objects, 10,000":                   {nested(`{"a":`, "}", 9_999), ""},
		"objects, 10,001":                   {nested(`{"a":`, "}", 10_000), Syntax},
		"an empty container counts":         {good(`"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), Syntax},
		"side by side is not deep":          {good(`"a":[` + strings.Repeat("[],", 20_000) + "[]]"), ""},
		"the record's array does not count": {"[" + nested("[", "]", 9_999) + "]", ""},
		"10,001 in the record's array":      {"[" + nested("[", "]", 10_000) + "]", Syntax},
		"no decision, 10,001":               {"[" + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "]", Syntax},
		"no decision, 10,000":               {"[" + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "]", WrongType},
		"a million":                         {strings.Repeat("[", 1_000_000), Syntax},
		"a million on a line":               {"{\"a\":" + strings.Repeat(`[{"a":`, 500_000), Syntax},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reasonOf(t, c.value); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDuplicateKey_AtTheTop(t *testing.T) {
	t.Parallel()
	many := func(last string) string {
		var b strings.Builder
		for i := range 5_000 {
			b.WriteString(`"k` + strconv.Itoa(i) + `":0,`)
		}
		return good(b.String() + last)
	}
	for name, c := range map[string]struct {
		value, field string
		want         Reason
	}{
		"a field of ours":                {good(`"path":"a","path":"a"`), "path", DuplicateKey},
		"decision_id":                    {good(`"decision_id":"d1"`), "decision_id", DuplicateKey},
		"null does not make it vanish":   {good(`"path":null,"path":"a"`), "path", DuplicateKey},
		"an unknown field":               {good(`"x":1,"y":2,"x":1`), "", DuplicateKey},
		"the empty name":                 {good(`"":1,"":2`), "", DuplicateKey},
		"escaped":                        {good(`"\u0061":1,"a":2`), "", DuplicateKey},
		"both escaped, differently":      {good(`"\u00E9":1,"\u00e9":2`), "", DuplicateKey},
		"escaped against raw, not ASCII": {good(`"\ud83d\ude00":1,"😀":2`), "", DuplicateKey},
		"escaped, a field of ours":       {good(`"decision\u005fid":"x"`), "decision_id", DuplicateKey},
		"names differ in case":           {good(`"Decision_ID":1,"PATH":2,"Timestamp":3,"x":1,"X":2`), "", ""},
		"a backslash is not an escape":   {good(`"\\u0061":1,"a":2`), "", ""},
		"nested":                         {good(`"input":{"a":1,"a":2},"labels":{"a":1,"a":1},"result":[{"a":1,"a":2}]`), "", ""},
		"different lone surrogates":      {good(`"\ud800":1,"\ud801":2`), "", ""},
		"the same lone surrogate":        {good(`"\ud800":1,"\uD800":2`), "", DuplicateKey},
		"half of the surrogates escaped": {good(`"a\udc00":1,"\u0061\uDC00":2`), "", DuplicateKey},
		"among many":                     {many(`"k\u0031":0`), "", DuplicateKey},
		"many, all different":            {many(`"x":0`), "", ""},
		"the 24th and the 25th":          {good(strings.Join(letters(24), ","), `"x":0`), "", DuplicateKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part := only(t, c.value)
			if c.want == "" {
				if part.Err != nil {
					t.Fatal(part.Err)
				}
				return
			}
			if part.Err == nil || part.Err.Reason != c.want || part.Err.Field != c.field {
				t.Errorf("got %v, want %s in %q", part.Err, c.want, c.field)
			}
		})
	}
}

// letters makes n members "a":0, "b":0, and so on.
func letters(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = `"` + string(rune('a'+i)) + `":0`
	}
	return all
}

func TestRefusal_FirstOfSeveralFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value, field string
		reason       Reason
		rest         string // the text at the offset
	}{
		"syntax before all":                 {`{"a":1,"a":"\u0000","path":1,}`, "", Syntax, "}"},
		"duplicate before missing":          {`{"a":1,"a":"\u0000","path":1}`, "", DuplicateKey, `a":"\u0000","path":1}`},
		"missing before wrong type":         {`{"decision_id":"d","path":1,"a":"\u0000"}`, "timestamp", MissingField, ""},
		"missing id before wrong timestamp": {`{"timestamp":5}`, "decision_id", MissingField, ""},
		"missing timestamp before wrong id": {`{"decision_id":5}`, "timestamp", MissingField, ""},
		"wrong type before range":           {strings.Replace(good(`"path":1`), `"d1"`, `"\u0000"`, 1), "path", WrongType, "1}"},
		"range":                             {strings.Replace(good(), `"d1"`, `"x\ud800"`, 1), "decision_id", OutOfRange, `"x\ud800"` + good()[len(`{"decision_id":"d1"`):]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record, got := Decode([]byte(c.value), limit)
			if got == nil {
				got = record.Parts[0].Err
			}
			offset := len(c.value) - len(c.rest)
			if c.rest == "" {
				offset = 0
			}
			if want := (Refusal{c.reason, c.field, offset}); got == nil || *got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestRefusal_OffsetOfAnElement(t *testing.T) {
	t.Parallel()
	for member, rest := range map[string]string{
		`"path":1`: `1}`, `"a":1,"a":2`: `a":2}`, `"path":"","path":""`: `path":""}`,
		`"path":"","path":"a","path":"b"`: `path":"a","path":"b"}`,
	} {
		record, _ := Decode([]byte(`[`+good()+`, `+good(member)+`]`), limit)
		bad := record.Parts[1]
		if got := string(bad.Value[bad.Err.Offset:]); got != rest {
			t.Errorf("%s: offset %d points at %q", member, bad.Err.Offset, got)
		}
	}
}
