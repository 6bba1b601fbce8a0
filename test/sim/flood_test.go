//go:build synctests

package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
)

// floods makes some schedules use shared dead letters: records with many refused decisions come, and few of each are
// forwarded alone. It has dice of its own, so that all other draws of a seed stay the same.
func (s *schedule) floods() {
	d := dice{rand.New(rand.NewPCG(s.Seed, 0xf100d))}
	if d.IntN(3) > 0 {
		return
	}
	s.Settings = append(s.Settings, fmt.Sprintf("DOCKET_MAX_REFUSED=%d", one(d, 1, 1, 2, 4)))
	for range 1 + d.IntN(8) {
		s.Arrivals = append(s.Arrivals, arrival{
			At: d.between(0, 12*time.Second), Record: d.IntN(len(floods())), Partition: int32(d.IntN(int(s.Partitions))), Flood: true,
		})
	}
	slices.SortStableFunc(s.Arrivals, func(a, b arrival) int { return cmp.Compare(a.At, b.At) })
}

// floods are records with many decisions, most of them refused by the decoder, in each form of an upload.
var floods = sync.OnceValue(func() []conservation.Record {
	d := dice{rand.New(rand.NewPCG(1, 0xf100d))}
	start := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	var all []conservation.Record
	for n := range 80 {
		form := n % 4 // array, lines, and both gzipped
		var ds []conservation.Decision
		for i := range 3 + d.IntN(10) {
			id, at := fmt.Sprintf("flood-%d-%d", n, i), start.Add(time.Duration(n*100+i)*time.Millisecond)
			kinds := floodKinds
			if form%2 == 0 {
				kinds = kinds[:len(kinds)-1] // in an array, a syntax error is one of the record
			}
			k := one(d, kinds...)
			if i == 0 && form%2 == 1 {
				k = floodKinds[0] // else nothing says that these are lines
			}
			body := strings.NewReplacer("ID", id, "AT", at.Format(time.RFC3339Nano), "SECRET", inPayloads).Replace(k.body)
			ds = append(ds, conservation.Decision{ID: id, Time: at, Body: []byte(body), Code: k.code})
		}
		bodies := make([][]byte, len(ds))
		for i := range ds {
			bodies[i] = ds[i].Body
		}
		value := bytes.Join(bodies, []byte("\n"))
		if form%2 == 0 {
			value = slices.Concat([]byte("["), bytes.Join(bodies, []byte(one(d, ",", ", ", ",\n"))), []byte("]"))
		}
		if form >= 2 {
			value = decision.Zip(value)
		}
		all = append(all, conservation.Record{Key: fmt.Append(nil, "flood-", n), Value: value, Decisions: ds, Planted: "flood"})
	}
	return all
})

// floodKinds are decisions of a flood, with the code that each is refused with; the first is good, and the last is not even JSON.
var floodKinds = []struct{ body, code string }{
	{`{"decision_id":"ID","timestamp":"AT","result":true,"input":{"user":"SECRET"}}`, ""},
	{`{"timestamp":"AT","was":"ID"}`, "missing_field"},
	{`{"decision_id":"ID","was":"AT"}`, "missing_field"},
	{`{"decision_id":"ID","timestamp":"yesterday","was":"AT SECRET"}`, "wrong_type"},
	{`{"decision_id":"ID\u0000","timestamp":"AT"}`, "out_of_range"},
	{`{"decision_id":"ID","decision_id":"another","timestamp":"AT"}`, "duplicate_key"},
	{`{"decision_id":"ID","timestamp":"AT"`, "syntax"},
}

// heldBy returns the decisions of a record that a shared letter has, in order. ok is false if the letter has others
// than these.
func heldBy(l *ledger.Entry, value []byte, was *conservation.Record) (held []conservation.Decision, ok bool) {
	parts, ok := new(decision.Decoder).Rest(value, maxRecordBytes)
	if !ok || len(parts) != l.Refused {
		return nil, false
	}
	for _, part := range parts {
		if part.Index >= len(was.Decisions) || !bytes.Equal(part.Value, was.Decisions[part.Index].Body) {
			return nil, false
		}
		held = append(held, was.Decisions[part.Index])
	}
	// Lines without a JSON object are one document, which no decoder reads.
	if decision.OnLines(inflated(value)) && !slices.ContainsFunc(held, func(d conservation.Decision) bool { return json.Valid(d.Body) }) {
		return []conservation.Decision{{Body: value, Code: "syntax"}}, true
	}
	return held, true
}

// inflated returns a value, gunzipped if it is gzip.
func inflated(value []byte) []byte {
	if !decision.IsGzip(value) {
		return value
	}
	z, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		panic(err) // it was read before
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return plain
}

// apart checks a record that was put back at one of these places. It reports whether each of its decisions has a row
// or a dead letter of its own.
func (w *world) apart(ev *evidence, places []verify.Place) bool {
	return slices.ContainsFunc(places, func(at verify.Place) bool {
		r, known := w.ledger.At(at.Topic, at.Partition, at.Offset)
		for i := range r.Decisions {
			at.Index = i
			d := &r.Decisions[i]
			if len(ev.letters[at]) == 0 && (d.Code != "" || ev.rows[verify.Identity{ID: d.ID, Time: d.Time}] == 0) {
				return false
			}
		}
		return known
	})
}

// A third of the seeds have shared dead letters. All other draws of a seed are as without them.
func TestFloods_Drawn(t *testing.T) {
	t.Parallel()
	with := 0
	for seed := range uint64(300) {
		s := plan(seed)
		came := slices.DeleteFunc(slices.Clone(s.Arrivals), func(a arrival) bool { return a.Flood })
		if len(came) == len(s.Arrivals) {
			continue
		}
		with++
		if !slices.ContainsFunc(s.Settings, func(set string) bool { return strings.HasPrefix(set, "DOCKET_MAX_REFUSED=") }) {
			t.Errorf("seed %d: records of a flood, and no limit", seed)
		}
		if !slices.IsSortedFunc(s.Arrivals, func(a, b arrival) int { return cmp.Compare(a.At, b.At) }) || len(came) < 20 {
			t.Errorf("seed %d: %d records, of which %d are of no flood", seed, len(s.Arrivals), len(came))
		}
	}
	if with < 70 || with > 130 {
		t.Errorf("%d of 300 seeds have a flood", with)
	}
}

// The decoder defines the expected results of a record of a flood.
func TestFloods_Deserved(t *testing.T) {
	t.Parallel()
	codes := map[string]int{}
	for n, r := range floods() {
		read, refused := decision.Decode(r.Value, maxRecordBytes)
		if refused != nil || len(read.Parts) != len(r.Decisions) {
			t.Fatalf("flood %d: %d decisions, %v", n, len(read.Parts), refused)
		}
		for i, part := range read.Parts {
			code := ""
			if part.Err != nil {
				code = string(part.Err.Reason)
			}
			codes[code]++
			if d := &r.Decisions[i]; code != d.Code || code == "" && part.Log.ID != d.ID || !bytes.Equal(part.Value, d.Body) {
				t.Errorf("flood %d: decision %d is %q, not %q: %s", n, i, code, d.Code, d.Body)
			}
		}
	}
	if len(codes) != 6 {
		t.Errorf("codes: %v", codes)
	}
}
