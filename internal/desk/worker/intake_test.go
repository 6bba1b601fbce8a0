package worker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

func TestIntake_ReasonOfAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                error
		reason, code, hint string
	}{
		{sqlError("57P03"), holdDatabaseAway, "57P03", "check that Postgres runs"},
		{sqlError("42P01"), holdDatabaseRefuses, "42P01", "migrations"},
		{sqlError("25006"), holdReadOnly, "25006", "primary"},
		{syscall.EMFILE, holdDatabaseAway, "no_descriptors", "no file descriptor left"},
	} {
		f := intakeFaultOf(c.err)
		if f.reason != c.reason || f.code != c.code || !strings.Contains(f.hint, c.hint) || strings.Contains(f.hint, "grants") != (c.reason == holdDatabaseRefuses) {
			t.Errorf("%v: %q %q %q", c.err, f.reason, f.code, f.hint)
		}
	}
}

func TestIntake_CommitsAfterTheLedger(t *testing.T) {
	t.Parallel()
	for _, code := range []sqlError{"57P03", "42P01", "25006"} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Bool
				s := &shelf{}
				s.refuse = func(int, ledger.Letter) error {
					if !back.Load() {
						return code
					}
					return nil
				}
				p := newPartition(t, s, deadRecords(0, 5), deadRecords(5, 5))
				var log bytes.Buffer
				in := intake(s, &log, nil)
				ended := make(chan error)
				go func() { ended <- in.Carry(t.Context(), p) }()
				time.Sleep(time.Hour)
				synctest.Wait()
				if p.committed() != -1 || p.standing() != 1 {
					t.Errorf("committed %d, %d holds, with a ledger that is away", p.committed(), p.standing())
				}
				reason, told, hint, since := in.Fault()
				if reason == "" || told != string(code) || hint == "" || time.Since(since) != time.Hour {
					t.Errorf("Fault = %q %q %q %v", reason, told, hint, since)
				}
				if n := s.asked(); n < 300 || n > 400 { // about one each 10 s
					t.Errorf("asked %d times in an hour", n)
				}
				back.Store(true)
				time.Sleep(11 * time.Second)
				synctest.Wait()
				if reason, _, _, _ := in.Fault(); p.committed() != 10 || p.standing() != 0 || reason != "" {
					t.Errorf("committed %d, %d holds, fault %q after the ledger is back", p.committed(), p.standing(), reason)
				}
				p.leave()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if lines := strings.Count(log.String(), "\n"); lines != 2 {
					t.Errorf("%d lines for one outage:\n%s", lines, log.String())
				}
			})
		})
	}
}

func TestIntake_LeavingIsUncommitted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"leaving", "lost"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{refuse: func(int, ledger.Letter) error { return sqlError("57P03") }}
				p := newPartition(t, s, deadRecords(0, 5))
				ctx, lost := context.WithCancel(t.Context())
				defer lost()
				in := intake(s, &bytes.Buffer{}, nil)
				ended := make(chan error)
				go func() { ended <- in.Carry(ctx, p) }()
				time.Sleep(time.Minute)
				end := map[string]func(){"leaving": p.leave, "lost": lost}[how]
				from := time.Now()
				end()
				if err := <-ended; err != nil || p.committed() != -1 || p.standing() != 0 || time.Since(from) != 0 {
					t.Errorf("Carry = %v after %v, committed %d, %d holds", err, time.Since(from), p.committed(), p.standing())
				}
				if reason, _, _, _ := in.Fault(); reason != "" {
					t.Errorf("a partition that is not ours has the fault %q", reason)
				}
			})
		})
	}
}

func TestIntake_RefusedLetterIsReduced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		odd       func(l ledger.Letter) bool
		key, text bool // the rest of the letter
	}{
		"headers": {func(l ledger.Letter) bool { return len(l.Headers) > 0 }, true, false},
		"message": {func(l ledger.Letter) bool { return l.Cause.Message == "refused" }, true, false},
		"key":     {func(l ledger.Letter) bool { return len(l.Key) > 0 }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{}
				s.refuse = func(_ int, l ledger.Letter) error {
					if l.ID == deadID(2) && test.odd(l) {
						return sqlError("22P05")
					}
					return nil
				}
				batch := deadRecords(0, 5)
				for _, r := range batch {
					r.Headers = append(r.Headers, kgo.RecordHeader{Key: "theirs", Value: []byte("x")})
				}
				p := newPartition(t, s, batch)
				var log bytes.Buffer
				go func() { time.Sleep(time.Second); p.leave() }()
				if err := intake(s, &log, nil).Carry(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				if p.committed() != 5 || p.holds != 0 {
					t.Errorf("committed %d, held %d times", p.committed(), p.holds)
				}
				for offset := range int64(5) {
					l := s.letters[deadID(offset)]
					if string(l.Value) != string(batch[offset].Value) {
						t.Errorf("the value of %d is %q", offset, l.Value)
					}
					odd := offset == 2
					if key := len(l.Key) > 0; key != (!odd || test.key) {
						t.Errorf("%d has a key: %v", offset, key)
					}
					if whole := len(l.Headers) == 1 && l.Cause.Message == "refused"; whole == odd {
						t.Errorf("%d is whole: %v", offset, whole)
					}
				}
				if !strings.Contains(log.String(), `"offset":2`) {
					t.Errorf("nobody is told what is missing:\n%s", log.String())
				}
			})
		})
	}
}

func TestIntake_RefusedInEveryFormHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		s.refuse = func(calls int, l ledger.Letter) error {
			if l.ID == deadID(1) && calls < 100 {
				return sqlError("23514")
			}
			return nil
		}
		p := newPartition(t, s, deadRecords(0, 3))
		ended := make(chan error)
		go func() { ended <- intake(s, &bytes.Buffer{}, nil).Carry(t.Context(), p) }()
		time.Sleep(time.Second)
		synctest.Wait()
		if p.committed() != -1 || p.standing() != 1 {
			t.Errorf("committed %d, %d holds", p.committed(), p.standing())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if p.committed() != 3 || p.standing() != 0 {
			t.Errorf("committed %d, %d holds after the refusal is gone", p.committed(), p.standing())
		}
		p.leave()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestIntake_ReportsNewFingerprints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{groups: []ledger.Group{{Fingerprint: "f"}}}
		p := newPartition(t, s, deadRecords(0, 1), deadRecords(1, 1))
		var told []ledger.Group
		go func() { time.Sleep(time.Second); p.leave() }()
		if err := intake(s, &bytes.Buffer{}, func(g []ledger.Group) { told = append(told, g...) }).Carry(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if len(told) != 1 || told[0].Fingerprint != "f" {
			t.Errorf("told of %v", told)
		}
	})
}

func TestIntake_FailedCommitIsCovered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		p := newPartition(t, s, deadRecords(0, 2))
		p.commits = errors.New("not now")
		go func() {
			time.Sleep(time.Second)
			p.mu.Lock()
			p.commits = nil
			p.mu.Unlock()
			p.batches <- deadRecords(2, 1)
			time.Sleep(time.Second)
			p.leave()
		}()
		if err := intake(s, &bytes.Buffer{}, nil).Carry(t.Context(), p); err != nil || p.committed() != 3 {
			t.Errorf("Carry = %v, committed %d", err, p.committed())
		}
	})
}

// TestIntake_Foreign: a writer to a dead-letter topic has nothing retried by itself, names no topic, and ends no retry.
func TestIntake_Foreign(t *testing.T) {
	t.Parallel()
	keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	in := intake(&shelf{}, &log, nil)
	in.cfg.Keys = keys
	mark := "00000000-0000-4000-8000-000000000000"
	says := func(offset int64) *kgo.Record {
		return deadRecord(offset, someDecision, kgo.RecordHeader{Key: envelope.OriginalTopic, Value: []byte("payments")}, kgo.RecordHeader{Key: envelope.OriginalPartition, Value: []byte("0")},
			kgo.RecordHeader{Key: envelope.OriginalOffset, Value: []byte("5")}, kgo.RecordHeader{Key: envelope.RetryOf, Value: []byte(mark)})
	}
	forged, ours := says(7), says(8)
	keys.Sign(ours)
	records := []*kgo.Record{forged, ours}
	letters := []ledger.Letter{in.read(&decision.Decoder{}, forged), in.read(&decision.Decoder{}, ours)}
	in.tellIDs(records[:1], letters[:1])
	if l := letters[0]; l.Cause.Kind != envelope.Foreign || l.Origin.Topic != "dlq" || l.Origin.Partition != 3 || l.Origin.Offset != 7 || l.RetryOf != "" ||
		l.ID != envelope.ID(l.Origin, l.Value) || l.DecisionID == "" || len(l.Headers) != len(forged.Headers) || log.Len() > 0 {
		t.Errorf("the forged one is %+v; %s", l, &log)
	}
	if l := letters[1]; l.Cause.Kind != envelope.Data || l.Origin.Topic != "payments" || l.RetryOf != mark {
		t.Errorf("the proven one is %+v", l)
	}
}

// TestIntake_IDsOfOthers: a forged record with the id of a later letter does not keep that letter out, and it is
// logged.
func TestIntake_IDsOfOthers(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &shelf{}
	letter, junk := deadRecord(7, `{"a":1}`), deadRecord(8, `junk`)
	for i := range junk.Headers {
		if junk.Headers[i].Key == envelope.DeadLetterID {
			junk.Headers[i].Value = []byte(envelope.IDOf(letter))
		}
	}
	in := intake(s, &log, nil)
	records := []*kgo.Record{junk, letter}
	letters := []ledger.Letter{in.read(&decision.Decoder{}, junk), in.read(&decision.Decoder{}, letter)}
	in.tellIDs(records, letters)
	if letters[0].ID == letters[1].ID || letters[1].ID != envelope.IDOf(letter) {
		t.Errorf("ids %s and %s", letters[0].ID, letters[1].ID)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"records":1,"topic":"dlq"`) || !strings.Contains(got, `"offset":8`) {
		t.Errorf("the log: %s", got)
	}
}
