package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// TestTail_ShowsWhatIsStored: each once, filtered, the newest first, with a place that survives a break.
func TestTail_ShowsWhatIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.as(t, "viewer")
		page := b.get(t, "/decisions?verdict=denied&live=1").body
		if !strings.Contains(page, `data-events="/events/decisions?verdict=denied" data-last="`) || !strings.Contains(page, `href="/decisions?verdict=denied">Stop`) {
			t.Fatal(page)
		}
		s := b.watch(t, "/events/decisions?verdict=denied")
		synctest.Wait()
		var denied []reader.Decision
		for _, d := range readertest.Decisions(90, noon.Add(time.Hour))[30:] {
			w.store.Add(d)
			if d.Verdict == reader.Denied {
				denied = append(denied, d)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		rows := s.named("rows")
		all := ""
		for _, e := range rows {
			all += e.data
		}
		for _, d := range denied {
			if strings.Count(all, `data-key="`+d.ID+" ") != 1 {
				t.Errorf("%s is there %d times", d.ID, strings.Count(all, `data-key="`+d.ID+" "))
			}
		}
		if n := strings.Count(all, "data-key="); n != len(denied) || strings.Contains(all, readertest.Secret) {
			t.Errorf("%d rows for %d decisions, or a payload", n, len(denied))
		}
		last := rows[len(rows)-2].id
		again := b.watch(t, "/events/decisions?verdict=denied", func(r *http.Request) { r.Header.Set("Last-Event-ID", last) })
		time.Sleep(1500 * time.Millisecond)
		if got := again.named("rows"); len(got) != 1 || !strings.Contains(got[0].data, denied[len(denied)-1].ID) {
			t.Errorf("after a break %v", got)
		}
		foreign := b.watch(t, "/events/decisions", func(r *http.Request) { r.Header.Set("Last-Event-ID", "planted") })
		time.Sleep(1500 * time.Millisecond)
		if note := foreign.named("note"); foreign.code != http.StatusOK || len(note) == 0 || !strings.Contains(note[0].data, "More are stored than can be shown") {
			t.Errorf("of a place that is none: %d %v", foreign.code, foreign.events())
		}
	})
}

// TestTail_NoteEndsWithReconnect: a note of the connection before is taken back, as nobody knows whether it still holds.
func TestTail_NoteEndsWithReconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.as(t, "viewer")
		page := b.get(t, "/decisions?live=1").body
		_, last, _ := strings.Cut(page, `data-last="`)
		last, _, _ = strings.Cut(last, `"`)
		s := b.watch(t, "/events/decisions", func(r *http.Request) { r.Header.Set("Last-Event-ID", last) })
		time.Sleep(3500 * time.Millisecond)
		if notes := s.named("note"); len(notes) != 1 || strings.TrimSpace(notes[0].data) != "" || len(s.named("asof")) < 3 {
			t.Errorf("%v", s.events())
		}
	})
}

func TestTail_IsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.as(t, "viewer").watch(t, "/events/decisions")
		synctest.Wait()
		w.store.Add(readertest.Decisions(100, noon.Add(time.Hour))...)
		time.Sleep(2 * time.Second)
		rows, notes := s.named("rows"), s.named("note")
		if len(rows) != 1 || strings.Count(rows[0].data, "data-key=") != 20 || !strings.Contains(notes[0].data, "80 more were stored") {
			t.Errorf("%d events; %v", len(rows), notes)
		}
		for range 6 {
			w.store.Add(readertest.Decisions(900, noon.Add(2*time.Hour))...)
			time.Sleep(time.Second)
		}
		time.Sleep(3 * time.Second)
		behind := false
		for _, e := range s.named("note") {
			behind = behind || strings.Contains(e.data, "More are stored than can be shown")
		}
		if !behind {
			t.Error("a tail that falls behind does not say so")
		}
		before := len(s.named("rows"))
		w.store.Add(readertest.Decision(77, noon.Add(3*time.Hour)))
		time.Sleep(2500 * time.Millisecond)
		if got := s.named("rows"); len(got) < before || !strings.Contains(got[len(got)-1].data, readertest.Decision(77, noon.Add(3*time.Hour)).ID) {
			t.Error("it does not go on from now")
		}
	})
}

func TestTail_DatabaseAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.as(t, "viewer").watch(t, "/events/decisions")
		synctest.Wait()
		w.store.Fail(context.DeadlineExceeded)
		time.Sleep(40 * time.Second)
		if notes := s.named("note"); s.ended() || len(notes) != 1 || !strings.Contains(notes[0].data, "The database does not answer") {
			t.Errorf("%v %v", s.ended(), notes)
		}
		quiet := len(s.named("asof"))
		w.store.Add(readertest.Decision(70, noon.Add(time.Hour)))
		w.store.Fail(nil)
		time.Sleep(10 * time.Second)
		if notes, rows := s.named("note"), s.named("rows"); len(rows) != 1 || strings.Contains(notes[len(notes)-1].data, "does not answer") || len(s.named("asof")) <= quiet {
			t.Errorf("%v %v", notes, rows)
		}
	})
}

// TestTail_SaysWhyItWaits: not every fault is one of the database, and a new reason is said.
func TestTail_SaysWhyItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.as(t, "viewer").watch(t, "/events/decisions")
		synctest.Wait()
		w.store.Fail(errors.New("planted-cause"))
		time.Sleep(20 * time.Second)
		notes := s.named("note")
		if len(notes) != 1 || !strings.Contains(notes[0].data, "Something went wrong here") || strings.Contains(notes[0].data, "database") || strings.Contains(notes[0].data, "planted") {
			t.Errorf("%v", notes)
		}
		w.store.Fail(context.DeadlineExceeded)
		time.Sleep(20 * time.Second)
		if notes = s.named("note"); len(notes) != 2 || !strings.Contains(notes[1].data, "The database does not answer") {
			t.Errorf("%v", notes)
		}
	})
}

// TestTail_RoleIsAsked: a viewer may not ask what a payload holds.
func TestTail_RoleIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]int{"/events/decisions?match=input:/n=1": 403, "/events/decisions?verdict=none": 422} {
		s := w.as(t, "viewer").watch(t, path)
		if <-s.done; s.code != want {
			t.Errorf("%.60s: %d, want %d", path, s.code, want)
		}
	}
}

// away is a store of two shards, of which b does not answer now and then.
type away struct {
	placed
	now atomic.Bool
}

func (a *away) Follow(ctx context.Context, f reader.Filter, t reader.Tail, limit int, payload bool) ([]reader.Decision, reader.Tail, error) {
	all, tail, err := a.placed.Follow(ctx, f, t, limit, payload)
	if err != nil || !a.now.Load() {
		return all, tail, err
	}
	return all, tail, reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Shard: "b", Err: errors.New("refused")}}})
}

// TestTail_NamesAMissingShard: once, with later rows, too, and no longer than it is missing.
func TestTail_NamesAMissingShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shards := &away{}
		w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
			shards.placed = p.Decisions.(placed)
			p.Decisions = shards
		})
		s := w.as(t, "viewer").watch(t, "/events/decisions")
		time.Sleep(5 * time.Second)
		if notes := s.named("note"); len(notes) != 0 {
			t.Errorf("without a gap it says %v", notes)
		}
		shards.now.Store(true)
		time.Sleep(5 * time.Second)
		if notes := s.named("note"); len(notes) != 1 || !strings.Contains(notes[0].data, "Shard not asked: b") {
			t.Errorf("without rows it says %v", notes)
		}
		w.store.Add(readertest.Decision(70, noon.Add(time.Hour)))
		time.Sleep(5 * time.Second)
		if notes := s.named("note"); len(notes) != 2 || len(s.named("rows")) != 1 || !strings.Contains(notes[1].data, "Shard not asked: b") {
			t.Errorf("with rows it says %v", notes)
		}
		shards.now.Store(false)
		time.Sleep(5 * time.Second)
		if notes := s.named("note"); len(notes) != 3 || strings.TrimSpace(notes[2].data) != "" {
			t.Errorf("after the gap it says %v", notes)
		}
	})
}
