package desk

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/home"
)

// still is an assignment that gives batches and takes nothing.
type still struct{ worker.Assignment }

func (still) Fetch(context.Context) (*home.Batch, error) { return &home.Batch{}, nil }
func (still) Hold() func()                               { return func() {} }

func TestPulse_StuckUnlessHolding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		h, release := p.take(still{})
		time.Sleep(time.Hour)
		if p.stuck(time.Minute) {
			t.Error("nothing is in hand")
		}
		if _, err := h.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if p.stuck(time.Minute) {
			t.Error("its patience is not over")
		}
		time.Sleep(2 * time.Second)
		if !p.stuck(time.Minute) {
			t.Error("a batch shows no progress for longer than the patience, and nobody says so")
		}
		let := h.Hold()
		time.Sleep(time.Hour)
		if p.stuck(time.Minute) {
			t.Error("a batch that holds counts as stuck")
		}
		let()
		if p.stuck(time.Minute) {
			t.Error("its time starts again after a hold")
		}
		time.Sleep(2 * time.Minute)
		if !p.stuck(time.Minute) {
			t.Error("what is stuck after a hold is not seen")
		}
		release()
		if p.stuck(time.Minute) {
			t.Error("the partition was given up")
		}
	})
}

// numbered is a partition whose commits take a while.
type numbered struct {
	still
	partition int32
	commit    time.Duration
}

func (numbered) Topic() string      { return "dlq" }
func (n numbered) Partition() int32 { return n.partition }

func (n numbered) Commit(context.Context, home.Settled) error {
	time.Sleep(n.commit)
	return nil
}

// slow is a ledger that takes a while for each answer.
type slow struct {
	ledger.Intake
	took time.Duration
}

func (s slow) Enter(context.Context, []ledger.Letter, int, ledger.Actor) (ledger.EnteredCount, error) {
	time.Sleep(s.took)
	return ledger.EnteredCount{}, nil
}

// A partition that is stuck is seen although others work. One whose ledger is slow and answers is not stuck, however many letters
// of its batch are entered one by one.
func TestPulse_OneOfSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		book := beating{slow{took: 50 * time.Second}, &p}
		works, release := p.take(numbered{partition: 1})
		defer release()
		if _, err := works.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		enter := func() {
			t.Helper()
			if _, err := book.Enter(t.Context(), []ledger.Letter{{Found: ledger.Found{Topic: "dlq", Partition: 1}}}, 3, ledger.Actor{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			enter()
			time.Sleep(9 * time.Second)
			if p.stuck(time.Minute) {
				t.Fatal("a ledger that is slow and answers is told to be stuck")
			}
		}
		stands, release := p.take(numbered{partition: 2})
		defer release()
		if _, err := stands.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		enter()
		if p.stuck(time.Minute) {
			t.Error("the patience of the second partition is not over")
		}
		enter()
		if !p.stuck(time.Minute) {
			t.Error("the answers about one partition hide that another is stuck")
		}
	})
}

// A commit is tried until the brokers take it. A new process would wait just the same.
func TestPulse_CommitThatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		h, release := p.take(numbered{commit: time.Hour})
		defer release()
		if _, err := h.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- h.Commit(t.Context(), home.Settled{}) }()
		time.Sleep(30 * time.Minute)
		if p.stuck(time.Minute) {
			t.Error("a commit that the brokers do not take is told to be stuck")
		}
		if err := <-done; err != nil || p.stuck(time.Minute) {
			t.Error("its time does not start again after the commit", err)
		}
		time.Sleep(2 * time.Minute)
		if !p.stuck(time.Minute) {
			t.Error("what is stuck after a commit is not seen")
		}
	})
}
