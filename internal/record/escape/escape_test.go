package escape

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// steering are characters that steer a terminal or turn the order of what it shows.
func steering() []rune {
	all := []rune{0x7f, 0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff, 0xe0001}
	for _, span := range [][2]rune{{0x80, 0x9f}, {0x202a, 0x202e}, {0x2066, 0x2069}} {
		for r := span[0]; r <= span[1]; r++ {
			all = append(all, r)
		}
	}
	return all
}

func TestJSON_EscapesSteeringCharacters(t *testing.T) {
	t.Parallel()
	for _, r := range steering() {
		value := map[string]string{"a" + string(r): string(r) + "é日" + string(r)}
		var b bytes.Buffer
		if err := Encoder(&b).Encode(value); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["a"+string(r)] != value["a"+string(r)] {
			t.Errorf("%U: another value: %v in %q", r, err, b.Bytes())
		}
		if bytes.ContainsRune(b.Bytes(), r) || !strings.Contains(b.String(), "é日") {
			t.Errorf("%U: %q", r, b.Bytes())
		}
	}
}

func TestJSON_NothingToEscape(t *testing.T) {
	t.Parallel()
	text := []byte("{\n  \"a\": \"é日\\u001b\"\n}")
	if out := JSON(text); &out[0] != &text[0] || len(out) != len(text) {
		t.Errorf("%q", out)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("plain")
	f.Add("\x80 \u202e \U000e0001 \u009b")
	f.Fuzz(func(t *testing.T, s string) {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		out := JSON(text)
		if i := bytes.IndexFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || !utf8.Valid(out) {
			t.Fatalf("%q", out)
		}
		var before, after string
		if err := json.Unmarshal(text, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &after); err != nil || before != after {
			t.Fatalf("%q became %q: %v", before, after, err)
		}
	})
}
