package collector

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/record/decision"
)

// BenchmarkOutlay compares the two bounds of an upload's memory with what it costs to decode the upload.
func BenchmarkOutlay(b *testing.B) {
	const decisions = 345 // a usual upload of 32 KiB of gzip
	var all []string
	for i := range decisions {
		all = append(all, fmt.Sprintf(`{"decision_id":"4ca636c1-55e4-417a-b1d8-4aceb67960%02d","timestamp":"2026-03-01T12:00:00Z","path":"app/authz/allow",`+
			`"labels":{"id":"1","version":"0.60"},"input":{"method":"GET","path":["v1","data","%d"],"user":"alice","attributes":{"a":[1,2,3]}},"result":true}`, i%100, i))
	}
	value := []byte("[" + strings.Join(all, ",") + "]")
	var d decision.Decoder
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"loose", func() { looseOutlay(value) }},
		{"exact", func() { outlayOf(value) }},
		{"decode", func() {
			d.Begin(decisions)
			if _, err := d.Decode(value, int64(len(value))); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				way.do()
			}
		})
	}
}
