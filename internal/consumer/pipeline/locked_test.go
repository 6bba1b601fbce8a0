package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
)

// lock makes decisions dated far wait for a lock, and probes for which locked returns true.
func (w *world) lock(locked func(at time.Time) bool) {
	w.db.refuse = func(id string) error {
		if strings.HasPrefix(id, "far") {
			return sqlstate("55P03")
		}
		return nil
	}
	w.db.probe = func(at time.Time) error {
		if locked(at) {
			return sqlstate("55P03")
		}
		return nil
	}
}

func farAway(at time.Time) bool { return at.After(time.Now().AddDate(1, 0, 0)) }

// Only the decisions of the locked partition wait. They spend no attempt.
func TestLocked_OneDay(t *testing.T) {
	t.Parallel()
	for program, change := range map[string]func(*world){"consumer": func(*world) {}, "replayer": replayer} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(change)
				w.lock(farAway)
				rs := recordsOf(0, dated("a", "far1", "b")...)
				want := "0"
				if w.config.Replay {
					rs, want = parkedOf(4, "a", "far1", "b"), "4"
					for i, value := range dated("a", "far1", "b") {
						rs[i].Value = []byte(value)
					}
				}
				w.run(t, newPartition(t, rs))
				if h := w.told.homes(); h["row"] != 2 || h["parked"] != 1 {
					t.Fatalf("homes %v", h)
				}
				if got := headerOf(w.kafka.took[0], envelope.RetryAttempt); got != want {
					t.Errorf("attempt %s, want %s", got, want)
				}
			})
		})
	}
}

// A lock on an hour of a day is found when a record fails alone.
func TestLocked_PartOfADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(replayer)
		at := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
		w.lock(func(probed time.Time) bool { return probed.Equal(at) })
		rs := parkedOf(4, "a", "far1", "b")
		for i, r := range rs {
			when := at.Add(time.Duration(i-1) * time.Hour)
			if i == 1 {
				when = at
			}
			r.Value = []byte(`{"decision_id":"` + []string{"a", "far1", "b"}[i] + `","timestamp":"` + when.Format(time.RFC3339) + `"}`)
		}
		rs = append(rs, parkedOf(4, "c")...)
		rs[3].Offset, rs[3].Value = rs[2].Offset+1, []byte(`{"decision_id":"c","timestamp":"`+at.Add(2*time.Hour).Format(time.RFC3339)+`"}`)
		w.run(t, newPartition(t, rs))
		if h := w.told.homes(); h["row"] != 3 || h["parked"] != 1 || h["exhausted"] != 0 {
			t.Fatalf("homes %v", h)
		}
		i := slices.IndexFunc(w.kafka.took, func(r *kgo.Record) bool { return strings.Contains(string(r.Value), "far1") })
		if got := headerOf(w.kafka.took[i], envelope.RetryAttempt); got != "4" {
			t.Errorf("attempt %s", got)
		}
	})
}

// Two hours of a day are locked, and each wait for a lock takes seconds. Each hour costs one probe, and the batch shows
// progress meanwhile.
func TestLocked_ManyRecordsOfAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lock, limit, far, near = 3200 * time.Millisecond, 5 * time.Second, 60, 100
		w := newWorld(replayer)
		at := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
		probes := 0
		w.lock(func(probed time.Time) bool { return probed.Before(at.Add(2 * time.Hour)) })
		refuse, probe := w.db.refuse, w.db.probe
		slow := func(err error) error {
			if err != nil {
				time.Sleep(lock)
			}
			return err
		}
		w.db.refuse = func(id string) error { return slow(refuse(id)) }
		w.db.probe = func(at time.Time) error {
			err := slow(probe(at))
			if err != nil {
				probes++
			}
			return err
		}
		var rs []*kgo.Record
		for i := range far + near {
			id, when := fmt.Sprintf("far%03d", i), at.Add(time.Duration(i)*2*time.Minute)
			if i >= far {
				id, when = fmt.Sprintf("a%03d", i), at.Add(3*time.Hour)
			}
			r := parkedOf(4, id)[0]
			r.Offset, r.Value = int64(i), []byte(`{"decision_id":"`+id+`","timestamp":"`+when.Format(time.RFC3339)+`"}`)
			rs = append(rs, r)
		}
		stop, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			for w.pipe.Wedged(limit) == nil {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
			t.Error("the batch counts as wedged")
		}()
		w.run(t, newPartition(t, rs))
		close(stop)
		<-watched
		if h := w.told.homes(); h["row"] != near || h["parked"] != far {
			t.Errorf("homes %v", h)
		}
		if probes != 2 {
			t.Errorf("%d probes of locked hours, want 2", probes)
		}
	})
}
