package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/record/envelope"
)

func TestSettle_SpoolsIfKafkaRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, logOf("a"), "x", "y", logOf("b")))
		w.kafka.fail = func(r *kgoRecord) error {
			if string(r.Value) == "y" {
				return errors.New("the answer was lost")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/ decode syntax 0"})
		if h := w.told.homes(); h["spooled"] != 1 || h["dead_letter"] != 1 || h["row"] != 2 || len(w.spool.lines) != 1 || told(w.spool.lines[0]) != "2/ decode syntax 0" {
			t.Errorf("homes %v, spool %d", h, len(w.spool.lines))
		}
	})
}

func TestSettle_TooLargeIsSentBareThenSpooled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
		if err != nil {
			t.Fatal(err)
		}
		w, p := newWorld(func(w *world) { w.config.Keys = keys }), newPartition(t, recordsOf(0, "large", "huge", "small"))
		w.kafka.fail = func(r *kgoRecord) error {
			if !keys.Prove(r) {
				t.Errorf("%s is forwarded without proof: %v", r.Value, r.Headers)
			}
			if string(r.Value) == "huge" || string(r.Value) == "large" && len(r.Headers) > 9 {
				return errTooLarge
			}
			return nil
		}
		w.run(t, p)
		if len(w.kafka.took) != 2 || string(w.kafka.took[0].Value) != "small" || string(w.kafka.took[1].Value) != "large" {
			t.Fatalf("published %d records", len(w.kafka.took))
		}
		if len(w.spool.oversize) != 1 || string(w.spool.oversize[0].Value) != "huge" || len(w.spool.lines) != 0 {
			t.Errorf("spooled %d oversize, %d others", len(w.spool.oversize), len(w.spool.lines))
		}
		if p.last() != 3 {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestSettle_NoHomeHolds(t *testing.T) {
	t.Parallel()
	for name, noSpool := range map[string]bool{"spool fails": false, "no spool": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(func(w *world) {
					if noSpool {
						w.spool = nil
					}
				})
				p := newPartition(t, recordsOf(0, logOf("a"), "x"), recordsOf(2, logOf("b")))
				healed := time.Now().Add(time.Hour)
				broken := func() error {
					if time.Now().Before(healed) {
						if p.last() >= 0 {
							t.Error("committed without a home")
						}
						return errors.New("no")
					}
					return nil
				}
				w.kafka.fail = func(*kgoRecord) error { return broken() }
				if w.spool != nil {
					w.spool.fail = broken
				}
				w.run(t, p)
				equal(t, "held", w.told.held, []string{"no_home "})
				if h := w.told.homes(); h["row"] != 2 || h["dead_letter"] != 1 || p.last() != 3 {
					t.Errorf("homes %v, committed %d", h, p.last())
				}
			})
		})
	}
}

// advising is an answer of brokers with advice.
type advising struct{ do string }

func (r advising) Error() string { return "refused" }
func (r advising) Hint() string  { return r.do }

func TestSettle_HintOfTheBrokers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.spool = nil })
		p := newPartition(t, recordsOf(0, logOf("a"), "x"))
		answers := []error{errors.New("no"), advising{"grant one"}, errors.New("no"), advising{"grant one"}, advising{"grant another"}}
		w.kafka.fail = func(*kgoRecord) error {
			if len(answers) == 0 {
				return nil
			}
			err := answers[0]
			answers = answers[1:]
			return err
		}
		w.run(t, p)
		const spool = "the spool is off, full or failing"
		equal(t, "hints", w.told.hints, []string{"check the brokers and the spool: Kafka does not accept the record, and " + spool, "grant one; " + spool, "grant another; " + spool})
		if h := w.told.homes(); h["row"] != 1 || h["dead_letter"] != 1 || p.last() != 2 {
			t.Errorf("homes %v, committed %d", h, p.last())
		}
	})
}

func TestCommit_RefusedIsCoveredByTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("b")...))
		p.refuse = errors.New("coordinator moved")
		w.db.hook = func(context.Context) {
			if len(w.db.writes) == 2 {
				p.refuse = nil
			}
		}
		w.run(t, p)
		if p.last() != 2 || !w.db.has("b") {
			t.Errorf("committed %d", p.last())
		}
	})
}

func TestSettle_HeldRecordHasTheTimeOfForwarding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(func(w *world) { w.spool = nil; w.config.ProbeInterval = time.Minute }), newPartition(t, recordsOf(0, "no JSON"))
		well := time.Now().Add(30 * 24 * time.Hour)
		w.kafka.fail = func(*kgoRecord) error {
			if time.Now().Before(well) {
				return errors.New("no such topic")
			}
			return nil
		}
		w.run(t, p)
		if len(w.kafka.took) != 1 || time.Since(w.kafka.took[0].Timestamp) > time.Hour {
			t.Error("the record is older than its topic keeps records, and deleted at once")
		}
	})
}
