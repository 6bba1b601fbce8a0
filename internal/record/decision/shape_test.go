package decision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alike are pairs of decisions whose keys look the same at a quick look.
var alike = [][2]string{
	{good(`"result":[{"allow":true}]`), good(`"result":{"allow":true}`)},
	{good(`"result":{"allow":true}`), good(`"result":[{"allow":true}]`)},
	{good(`"result":[1,{"allow":true}]`), good(`"result":{"allow":false}`)},
	{good(`"result":{"allow":true}`), good(`"labels":{"allow":true}`)},
	{good(`"labels":{"id":"a","x":{"id":"b"}}`), good(`"labels":{"id":"a","x":{"ie":"b"}}`)},
	{good(`"abcdefgh1":1,"abcdefgh2":2`), good(`"abcdefgh1":1,"abcdefgh1":2`)},
	{good(`"abcdefgh":1,"abcdefgi":2`), good(`"abcdefgi":1,"abcdefgi":2`)},
	{good(`"x":{"b":1,"a":2}`), good(`"x":{"a":1,"b":2}`)},
	{good(`"x":{"b":1,"a":2}`), good(`"x":{"a":1,"a":2}`)},
	{good(`"x":{"a":1}`), good(`"x":[],"a":1`)},
	{good(`"x":{"a":{"b":1}}`), good(`"x":{"a":1},"b":1`)},
	{good(`"x":1`), good(`"\u0078":1`)}, {good(`"abcdef":1`), good(`"\u0061":1`)},
	{good(`"a":{"b":{},"c":1}`), good(`"a":{"b":{"c":1}}`)},
	{good(`"x":"a"`), good(`"x":"\u0000"`)}, {good(`"path":"a"`), good(`"path":1`)}, {good(`"path":"a"`), good(`"path":null`)},
	{good(`"x":1`), `{"x":1,` + good()[1:]}, {good(`"é":1`), good(`"è":1`)}, {good(), strings.Replace(good(), "decision_id", "decision_ie", 1)},
}

// sameAsFirst compares a Decoder that has learned one decision with a new one.
func sameAsFirst(t *testing.T, learned, value []byte) {
	t.Helper()
	var d Decoder
	d.Begin(2)
	for range 4 {
		_, _ = d.Decode(learned, limit) // refused or not: only the state that it leaves matters
	}
	got, refused := d.Decode(value, limit)
	want, wantRefused := Decode(value, limit)
	if diff := cmp.Diff(want, got, fields) + cmp.Diff(wantRefused, refused); diff != "" {
		t.Fatalf("%q after %q: %s", value, learned, diff)
	}
	for _, part := range got.Parts {
		if part.Err == nil {
			checkPieces(t, part.Log)
		}
	}
}

func TestShape_FitsNoOther(t *testing.T) {
	t.Parallel()
	for _, pair := range alike {
		sameAsFirst(t, []byte(pair[0]), []byte(pair[1]))
		sameAsFirst(t, []byte(pair[1]), []byte(pair[0]))
	}
}

// A shape takes memory, so it is learned only the second time. Frequent shapes are not lost to a few others.
func TestShape_LearnedTheSecondTime(t *testing.T) {
	t.Parallel()
	var d Decoder
	d.Begin(1)
	value := []byte(typical)
	known := func() bool {
		if _, refusal := d.Decode(value, limit); refusal != nil {
			t.Fatal(refusal)
		}
		return d.scanner.draft.known != nil
	}
	for i := range 3 {
		if known() != (i == 2) {
			t.Fatalf("time %d: known %v", i+1, i != 2)
		}
	}
	for _, pair := range alike {
		if _, refused := d.Decode([]byte(pair[0]), limit); refused != nil {
			t.Fatal(refused)
		}
		if !known() {
			t.Fatal("forgotten")
		}
	}
}

func TestShape_Bounded(t *testing.T) {
	t.Parallel()
	var d Decoder
	d.Begin(1)
	for what, member := range map[string]string{
		"of too many members": `"x":[` + strings.Repeat(`{"b":1,"a":2},`, mostMarks/4) + `0]`,
		"of too long a key":   `"` + strings.Repeat("k", 8*mostWords) + `":1`,
	} {
		for range 4 {
			if got, refused := d.Decode([]byte(good(member)), limit); refused != nil || got.Parts[0].Err != nil {
				t.Fatalf("one %s is refused, and nobody would learn it: %v", what, refused)
			}
		}
		for i := range d.scanner.shapes.kept {
			if sh := &d.scanner.shapes.kept[i]; len(sh.marks) > 0 || cap(sh.words) > 2*mostWords {
				t.Errorf("one %s is kept", what)
			}
		}
	}
}

// FuzzShape: learned shapes change nothing about the next result.
func FuzzShape(f *testing.F) {
	for _, pair := range alike {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, learned, value []byte) { sameAsFirst(t, learned, value) })
}
