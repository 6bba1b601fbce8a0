package decision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzSome: in any portions, the decisions are those of the whole record, and the same records are refused.
func FuzzSome(f *testing.F) {
	seed(f)
	three := []string{good(), good(`"a":{"b":1,"a":[{"z":1,"y":2}]}`), good(`"path":"x"`)}
	for _, value := range []string{
		"[" + strings.Join(three, ",") + "]", strings.Join(three, "\n"), "[" + strings.Join(three, ",") + ",{]", "[3,[[]]," + good() + ",{}]",
		strings.Join(three, "\n") + "\n{\n\n" + good(), "[oops\n" + strings.Join(three, "\n"), "[" + three[0] + "," + three[1] + "]\n" + strings.Join(three, "\n"),
		string(zip(f, "["+strings.Join(three, ",")+"]")),
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		whole, refused := Decode(value, limit)
		for _, most := range []int{1, 2, 5} {
			var d Decoder
			d.Begin(1)
			some, err := d.DecodeSome(value, limit, 0, most)
			if diff := cmp.Diff(refused, err); diff != "" {
				t.Fatalf("%d at a time: %s", most, diff)
			}
			var parts []Part
			for refused == nil {
				if some.Count != len(whole.Parts) || some.Sole != whole.Sole || some.Inflated != whole.Inflated && len(parts) == 0 || len(some.Parts) > most {
					t.Fatalf("%d at a time: %d of %d decisions, sole %v, inflated %d; the whole has %d, %v, %d", most, len(some.Parts), some.Count, some.Sole, some.Inflated, len(whole.Parts), whole.Sole, whole.Inflated)
				}
				if parts = append(parts, some.Parts...); len(parts) >= some.Count {
					break
				}
				if d = (Decoder{}); len(some.Parts) == 0 {
					t.Fatalf("%d at a time: none from %d on", most, len(parts))
				}
				if some, err = d.DecodeSome(some.Plain, limit, len(parts), most); err != nil {
					t.Fatalf("%d at a time: refused from %d on: %v", most, len(parts), err)
				}
			}
			if diff := cmp.Diff(whole.Parts, parts, fields); diff != "" {
				t.Fatalf("%d at a time: -whole +portions\n%s", most, diff)
			}
		}
	})
}
