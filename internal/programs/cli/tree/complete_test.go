package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

// completed are answers that say how complete they are, by one look.
func completed(t *testing.T, l *completetest.Log, b completetest.Books) *complete.Answers {
	t.Helper()
	return &complete.Answers{Books: b, Within: time.Hour, Status: func(ctx context.Context) complete.Status {
		w := completetest.Watch(l, func() time.Time { return now })
		if err := w.Look(ctx); err != nil {
			t.Error(err)
		}
		return w.Status()
	}}
}

func TestComplete_JSON(t *testing.T) {
	t.Parallel()
	id := readertest.Decisions(12, now)[6].ID
	for name, args := range map[string][]string{"logs": {"logs"}, "none": {"logs", "--path", "no/such"}, "one": {"logs", id}, "why": {"why", id}, "stats": {"stats", "--since", "30m"}, "absent": {"logs", "no-such-id-at-all"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{store: decisions(12), complete: completed(t, &completetest.Log{Values: []string{"{"}}, completetest.Books{N: 2})}
			r := w.call(append(args, "--json")...)
			var got reader.Completeness
			if err := json.Unmarshal([]byte(r.out), &got); err != nil {
				t.Fatalf("%v in %s", err, r.out)
			}
			if got.CompleteUntil == nil || got.Parked == nil || *got.Parked != 1 || got.DeadLettered == nil || *got.DeadLettered != 2 || got.Spooled == nil || *got.Spooled != 0 || got.Freshness == "" {
				t.Errorf("%+v", got)
			}
			if name == "none" && got.Freshness != reader.NotFound || name == "logs" && got.Freshness != reader.Fresh {
				t.Errorf("%s is %s", name, got.Freshness)
			}
		})
	}
}

// States say how complete they are, but not until when. Without room for further states it is not known what else there was: a
// known subject gets none on a further path either.
func TestComplete_States(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]reader.Freshness{
		"state alice": reader.Partial, "state nobody": reader.Partial, "flips": reader.Partial, "state alice --path admin/*": reader.Partial,
		"roomy state alice": reader.Fresh, "roomy state nobody": reader.NotFound, "roomy flips": reader.Fresh,
	} {
		w := &world{states: statesKept(), complete: completed(t, &completetest.Log{}, completetest.Books{N: 2})}
		var got map[string]any
		args, roomy := strings.CutPrefix(args, "roomy ")
		if roomy {
			w.states.Mark.FullAt = nil
		}
		r := w.call(append(strings.Fields(args), "--json")...)
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatalf("%v in %s", err, r.out)
		}
		if until, there := got["complete_until"]; got["freshness"] != string(want) || !there || until != nil || got["behind"] != 0.0 || got["dead_lettered"] != 2.0 {
			t.Errorf("%s: %v", args, got)
		}
		if !strings.Contains(r.err, "not known until when this is complete; 2 dead-lettered") {
			t.Errorf("%s says %s", args, r.err)
		}
	}
}

func TestComplete_OneLineAtTheEnd(t *testing.T) {
	t.Parallel()
	id := readertest.Decisions(12, now)[6].ID
	for name, args := range map[string][]string{"logs": {"logs"}, "lines": {"logs", "--lines"}, "one": {"logs", id}, "why": {"why", id}, "stats": {"stats", "--since", "30m"}, "absent": {"logs", "no-such-id-at-all"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{store: decisions(12), complete: completed(t, &completetest.Log{}, completetest.Books{N: 2})}
			r := w.call(args...)
			lines := strings.Split(strings.TrimSpace(r.err), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "complete until ") || !strings.Contains(last, "2 dead-lettered") {
				t.Errorf("the last line is %q", last)
			}
			if strings.Contains(r.out, "complete until") {
				t.Errorf("it is on standard output:\n%s", r.out)
			}
			if plain := (&world{store: decisions(12)}).call(args...); plain.out != r.out || plain.code != r.code {
				t.Errorf("standard output or the exit code changed:\n%s\nwas\n%s", r.out, plain.out)
			}
		})
	}
}
