package kafka

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/record/home"
)

func TestTake_NothingWhileThePartitionIsLost(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{BatchRecords: 10, BatchBytes: 1 << 20, BufferBatches: 4, BufferBytes: 5 << 20})
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			a := newAssignment(t.Context(), s, "decision-logs", 0, "member")
			if err := a.append([]*kgo.Record{{Topic: "decision-logs"}}); err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(time.Second) // until Take has waited long enough
				a.kill()
			}()
			records, err := a.Take(t.Context(), 2, 1<<20, time.Second)
			if len(records) == 0 && !errors.Is(err, ErrLeaving) || len(records) > 0 && err != nil {
				t.Errorf("%d records, %v", len(records), err)
			}
			synctest.Wait()
		})
	}
}

func TestAwaitMore_OnlyAtTheEnds(t *testing.T) {
	t.Parallel()
	at := func(position, end int64) func(*Assignment) {
		return func(a *Assignment) { a.position, a.end = position, end }
	}
	for _, c := range []struct {
		name   string
		wait   time.Duration
		first  func(*Assignment)
		want   time.Duration
		polled int
	}{
		{"many came", 200 * time.Millisecond, at(7, 7), 12500 * time.Microsecond, manyRecords},
		{"fewer came", 200 * time.Millisecond, at(7, 7), 25 * time.Millisecond, manyRecords - 1},
		{"many came, a long batch wait", time.Hour, at(7, 7), longestPause / 2, 1 << 20},
		{"all is read", 200 * time.Millisecond, at(7, 7), 25 * time.Millisecond, 1},
		{"a long batch wait", time.Hour, at(7, 7), longestPause, 1},
		{"no batch wait", 0, at(7, 7), 0, 1},
		{"more to read", 200 * time.Millisecond, at(6, 7), 0, 1},
		{"more to read when the queue has room", 200 * time.Millisecond, func(a *Assignment) { at(6, 7)(a); a.full = true }, 0, 1},
		{"nothing came since the start", 200 * time.Millisecond, func(a *Assignment) { at(-1, 7)(a); a.start = 7 }, 25 * time.Millisecond, 1},
		{"an empty partition", 200 * time.Millisecond, at(-1, 0), 25 * time.Millisecond, 1},
		{"a partition that holds", 200 * time.Millisecond, func(a *Assignment) { at(6, 7)(a); a.holds = 1 }, 25 * time.Millisecond, 1},
		{"a partition with a fault", 200 * time.Millisecond, func(a *Assignment) { at(6, 7)(a); a.faulty = &partFault{resting: true} }, 25 * time.Millisecond, 1},
		{"dropped records", 200 * time.Millisecond, func(a *Assignment) { at(7, 7)(a); a.rewind = &kgo.EpochOffset{} }, 0, 1},
		{"a partition that ended", 200 * time.Millisecond, func(a *Assignment) { at(6, 7)(a); a.finished = true }, 25 * time.Millisecond, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := lone(SourceConfig{BatchWait: c.wait})
			s.parts[0], s.parts[1] = newAssignment(t.Context(), s, "decision-logs", 0, "member"), newAssignment(t.Context(), s, "decision-logs", 1, "member")
			c.first(s.parts[0])
			at(3, 3)(s.parts[1])
			from := time.Now()
			s.awaitMore(t.Context(), c.polled)
			if took := time.Since(from); took != c.want {
				t.Errorf("%s: paused for %v, want %v", c.name, took, c.want)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			from = time.Now()
			if s.awaitMore(ended, c.polled); time.Since(from) != 0 {
				t.Errorf("%s: paused after the end", c.name)
			}
		})
	}
}

func TestCommit_AnswerWithoutThePartition(t *testing.T) {
	t.Parallel()
	for name, resp := range map[string]*kmsg.OffsetCommitResponse{
		"none": nil, "no topic": {}, "no partition": {Topics: []kmsg.OffsetCommitResponseTopic{{}}},
	} {
		if commitAnswer(resp, nil) == nil {
			t.Errorf("%s: counts as committed", name)
		}
	}
}

func TestKill_WaitsForARunningCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAssignment(t.Context(), lone(SourceConfig{}), "decision-logs", 0, "member")
		a.commits <- struct{}{} // as while a commit runs
		killed := make(chan struct{})
		go func() { defer close(killed); a.kill() }()
		synctest.Wait()
		select {
		case <-killed:
			t.Error("the partition is given away while a commit of it is under way")
		default:
		}
		<-a.commits
		<-killed
	})
}

func TestRevoked_WaitsForTheHandler(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]time.Duration{"revoked": 10 * time.Second, "lost": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := lone(SourceConfig{})
				a := newAssignment(t.Context(), s, "decision-logs", 0, "member")
				s.parts[0] = a
				go func() {
					<-a.ctx.Done()
					time.Sleep(3 * time.Second) // it cannot be cut short, like a sync of the disk
					close(a.done)
				}()
				from := time.Now()
				s.giveUp([]*Assignment{a}, drain)
				if took := time.Since(from); took != drain+3*time.Second || len(s.parts) != 0 {
					t.Errorf("given away after %v, the handler ended after %v", took, drain+3*time.Second)
				}
			})
		})
	}
}

// TestLost_EndsOnlyItsHandler has a handler that ends at the moment when its context does. The contexts below it end
// one after the other, in any order. With so many of them the assignment's own often ends late.
func TestLost_EndsOnlyItsHandler(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := lone(SourceConfig{})
		polling, stop := context.WithCancelCause(t.Context())
		s.stop = stop
		a := newAssignment(t.Context(), s, "decision-logs", 0, "member")
		s.parts[0] = a
		for range 5000 {
			_, cancel := context.WithCancel(a.ctx)
			defer cancel()
		}
		begun := make(chan struct{})
		s.handle = func(ctx context.Context, _ *Assignment) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}
		go s.carry(a)
		<-begun
		s.giveUp([]*Assignment{a}, 0)
		if polling.Err() != nil {
			t.Fatalf("the session ends: %v", context.Cause(polling))
		}
		stop(nil)
	}
}

func TestCommit_NeverGoesBack(t *testing.T) {
	t.Parallel()
	a := newAssignment(t.Context(), lone(SourceConfig{}), "decision-logs", 0, "member")
	a.startAt(kgo.EpochOffset{Offset: 20})
	records := []*kgo.Record{{Topic: "decision-logs", Offset: 9}}
	a.account.Enter(records...)
	b := a.account.Batch(records)
	b.Carries(0, 1)[0].Give(home.Row)
	settled, err := b.Settle()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Commit(t.Context(), settled); err != nil { // without a client nothing can be sent
		t.Error(err)
	}
}
