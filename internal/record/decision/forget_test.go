package decision

import (
	"reflect"
	"strings"
	"testing"
)

// The inflated bytes of a refused record are not counted, so nothing may keep them in memory.
func TestDecoder_FreesARefusedRecord(t *testing.T) {
	t.Parallel()
	array := "[" + strings.Repeat(good()+",", 7)
	for name, value := range map[string]string{
		"torn array":            array,
		"bytes behind an array": array + good() + "]]",
		"too many in an array":  "[" + strings.Repeat("1,", MaxDecisions) + "1]",
		"too many lines":        strings.Repeat("{}\n", MaxDecisions+1),
		"bytes behind a record": good() + "]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, room := range []int{3, 20} {
				var d Decoder
				d.Begin(room)
				kept, refusal := d.Decode([]byte(good()), limit)
				if refusal != nil {
					t.Fatal(refusal)
				}
				if _, refusal := d.Decode(zip(t, value), limit); refusal == nil {
					t.Fatal("it was not refused")
				}
				for i, part := range d.scanner.parts[:cap(d.scanner.parts)] {
					if i >= len(kept.Parts) && !reflect.ValueOf(part).IsZero() {
						t.Fatalf("room for %d: part %d of what was refused is still there", room, i)
					}
				}
			}
		})
	}
}

func TestDecoder_FreesUncommonNames(t *testing.T) {
	t.Parallel()
	var d Decoder
	d.Begin(1)
	if _, refusal := d.Decode([]byte("{"+strings.Repeat(`"a":1,`, 100_000)+`"a":1}`), limit); refusal != nil {
		t.Fatal(refusal)
	}
	if d.Begin(1); d.scanner.draft.others.many != nil {
		t.Errorf("the places of %d names are kept", len(d.scanner.draft.others.many))
	}
}
