package pipeline

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
)

// TestUploadedBy_Row: a row has the client that uploaded its decision, if a key proves it. This holds for source
// records and for parked ones.
func TestUploadedBy_Row(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
		if err != nil {
			t.Fatal(err)
		}
		collected := func(r *kgo.Record, by string) *kgo.Record {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.UploadedBy, Value: []byte(by)})
			keys.Sign(r)
			return r
		}
		sources := recordsOf(0, logOf("plain"), logOf("claimed"), "["+logOf("one")+","+logOf("two")+"]", logOf("other"), logOf("nobody"))
		collected(sources[1], "opa-1").Headers[0].Value = []byte("opa-2") // not proven by the key
		collected(sources[2], "opa-1")
		collected(sources[3], "opa-2")
		collected(sources[4], "")
		all := map[string]string{"plain": "", "claimed": "", "one": "opa-1", "two": "opa-1", "other": "opa-2", "nobody": ""}
		parked := recordsOf(0, logOf("again"), logOf("forged"))
		for i, r := range parked {
			sealer, e := envelope.Sealer{Keys: keys}, envelope.Open(collected(&kgo.Record{Topic: "decision-logs", Offset: int64(100 + i), Value: r.Value}, "opa-1"))
			parked[i] = sealer.Seal(&e, &envelope.Cause{Kind: envelope.Transient, Code: "08006"}, envelope.Sealed{Topic: "decision-logs", Value: r.Value, At: time.Now()})
			parked[i].Offset = r.Offset
		}
		parked[1].Value = []byte(logOf("altered"))
		for name, c := range map[string]struct {
			keys    envelope.Keys
			replay  bool
			records []*kgo.Record
			want    map[string]string
		}{
			"the source":                {keys, false, sources, all},
			"the source, without a key": {envelope.Keys{}, false, sources, map[string]string{"plain": "", "claimed": "", "one": "", "two": "", "other": "", "nobody": ""}},
			"parked":                    {keys, true, parked, map[string]string{"again": "opa-1", "altered": ""}},
		} {
			got := map[string]string{}
			w := newWorld(func(w *world) { w.config.Keys, w.config.Replay = c.keys, c.replay })
			w.db.odd = func(r Row) error {
				got[r.Log.ID] = r.UploadedBy
				return nil
			}
			w.run(t, newPartition(t, slices.Clone(c.records)))
			if !maps.Equal(got, c.want) {
				t.Errorf("%s: uploaded by %v, want %v", name, got, c.want)
			}
		}
	})
}
