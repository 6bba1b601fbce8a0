package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
)

// following is a desk with numbered decisions, one stored each second. A place is the number of the next one. After a
// restart a place is up to back decisions behind, as the real one is.
type following struct {
	stored           atomic.Int64
	most, back       int
	restarted, quiet atomic.Bool // quiet: it does not tell until when all is done with
	asked, waits     atomic.Int64
}

func (f *following) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	stored := int(f.stored.Load())
	q := r.URL.Query()
	from, err := strconv.Atoi(q.Get("tail"))
	if err != nil {
		from = stored
	} else if q.Get("wait") != "0" {
		f.waits.Add(1)
	}
	if f.restarted.Swap(false) {
		from = max(0, from-f.back)
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	limit = min(limit, f.most)
	out := api.Stored{Decisions: []api.Decision{}}
	for n := from; n < stored && len(out.Decisions) < limit; n++ {
		out.Decisions = append(out.Decisions, api.Decision{ID: fmt.Sprint("d-", n), Timestamp: begun, StoredAt: begun.Add(time.Duration(n) * time.Second)})
	}
	next := from + len(out.Decisions)
	out.Tail, out.More = strconv.Itoa(next), len(out.Decisions) == limit
	if settled := begun.Add(time.Duration(next-f.back) * time.Second); !f.quiet.Load() {
		out.Settled = &settled
	}
	_ = json.NewEncoder(w).Encode(out) // the client is gone
}

var begun = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestFollow_RestartRepeatsNothing: a desk tells the last decisions again after a restart, and the client knows them.
func TestFollow_RestartRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		desk := &following{most: 1000, back: 4}
		desk.stored.Store(5)
		desk.quiet.Store(quiet)
		all := served(t, desk.ServeHTTP).Decisions()
		_, tail, err := all.Follow(context.Background(), reader.Filter{}, reader.Tail{}, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for round := range 40 {
			desk.stored.Add(int64(round % 3))
			desk.restarted.Store(round%2 == 0)
			var found []reader.Decision
			if found, tail, err = all.Follow(context.Background(), reader.Filter{}, tail, 1000, false); err != nil {
				t.Fatal(err)
			}
			for _, d := range found {
				seen[d.ID]++
			}
		}
		_, tail, _ = all.Follow(context.Background(), reader.Filter{}, tail, 1000, false)
		for n := 5; n < int(desk.stored.Load()); n++ {
			if id := fmt.Sprint("d-", n); seen[id] != 1 {
				t.Errorf("%s came %d times", id, seen[id])
			}
		}
		if told := toldIn(tail); !quiet && told > 8 {
			t.Errorf("%d decisions are remembered", told)
		}
	}
}

// TestFollow_KeepsUpWithPayloads: a desk gives 100 with payloads at a time, and more than 100 a second are stored.
func TestFollow_KeepsUpWithPayloads(t *testing.T) {
	t.Parallel()
	desk := &following{most: 100}
	all := served(t, desk.ServeHTTP).Decisions()
	_, tail, err := all.Follow(context.Background(), reader.Filter{}, reader.Tail{}, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	desk.stored.Store(350)
	desk.asked.Store(0)
	found, tail, err := all.Follow(context.Background(), reader.Filter{}, tail, 1000, true)
	if err != nil || len(found) != 350 || desk.asked.Load() != 4 || desk.waits.Load() != 1 {
		t.Errorf("%d decisions in %d requests of which %d may wait: %v", len(found), desk.asked.Load(), desk.waits.Load(), err)
	}
	desk.stored.Store(1500)
	if found, _, err = all.Follow(context.Background(), reader.Filter{}, tail, 1000, true); err != nil || len(found) != 1000 {
		t.Errorf("%d decisions: %v", len(found), err)
	}
}

// toldIn is how many decisions a place remembers.
func toldIn(t reader.Tail) int { return t.Mark.(interface{ Told() int }).Told() }
