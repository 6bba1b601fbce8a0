package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/testkit/output"
)

// untrimmed is a book that cannot remove ranges that are done with.
type untrimmed struct{ SurplusBook }

var errUntrimmed = errors.New("the ledger does not trim")

func (untrimmed) TrimSurplus(context.Context) error { return errUntrimmed }

func TestSurplus_TrimFails(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 3, nil)
	f.write("flooder", 10)
	f.duty.book = untrimmed{f.book}
	if err := f.duty.turn(t.Context()); !errors.Is(err, errUntrimmed) {
		t.Errorf("the turn says %v", err)
	}
	if n := f.metric("docket_desk_surplus_letters", "open"); n != 7 {
		t.Errorf("the metric has %v letters, want 7", n)
	}
	f.hour = f.hour.Add(time.Hour)
	if err := f.duty.turn(t.Context()); !errors.Is(err, errUntrimmed) {
		t.Errorf("the next turn says %v", err)
	}
	f.want(6, `"flooder" 3-9 from 6: 7, 3 0 0 open`)
}

// removed has two open ranges of a topic that was deleted, before all others.
type removed struct {
	SurplusBook
	SurplusTopics
	asked int
}

var errRemoved = errors.New("no such topic")

func (r *removed) Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error) {
	ranges, err := r.SurplusBook.Surplus(ctx, all, after, n)
	old := ledger.Surplus{ID: 98, Topic: "removed", Partition: 3, Last: 9, Client: "flooder"}
	next := old
	next.ID = 99
	return append([]ledger.Surplus{old, next}, ranges...), err
}

func (r *removed) Retention(ctx context.Context, topic string) (Retention, error) {
	if topic == "removed" {
		r.asked++
		return Retention{}, errRemoved
	}
	return r.SurplusTopics.Retention(ctx, topic)
}

func TestSurplus_OneTopicIsRemoved(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 4)
	f.hour = f.hour.Add(time.Hour)
	f.book.Bounded(0, nil)
	f.duty.cfg.MaxEntered = 0
	r := &removed{SurplusBook: f.book, SurplusTopics: f.topic}
	f.duty.book, f.duty.topics = r, r
	if err := f.duty.turn(t.Context()); !errors.Is(err, errRemoved) || r.asked != 1 {
		t.Errorf("the turn asked %d times and says %v", r.asked, err)
	}
	f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
}

// TestSurplus_AnotherDeskTakesOver: a desk that cannot read Kafka leaves the work to one that can. Kafka may be about to delete the
// letters.
func TestSurplus_AnotherDeskTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlood(t, 1, nil)
		f.write("flooder", 4)
		f.book.Bounded(0, nil)
		desk := func(holder string, topics SurplusTopics) {
			s := NewSurplus(SurplusConfig{Holder: holder}, f.intake, f.book, topics, zerolog.Nop())
			go func() {
				if err := s.Run(t.Context()); err != nil {
					t.Error(err)
				}
			}()
		}
		blind := *f.topic
		blind.failing = errors.New("the brokers refuse this desk")
		desk("blind", &blind)
		synctest.Wait()
		time.Sleep(3 * time.Second)
		desk("one", f.topic)
		time.Sleep(time.Minute)
		synctest.Wait()
		f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
	})
}

// TestSurplus_RestIsNoRecovery: a desk that cannot read Kafka says so once. It does not say that it recovered while it leaves a turn to
// another desk, or while another one has the duty.
func TestSurplus_RestIsNoRecovery(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"alone": 0, "beside another": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFlood(t, 1, nil)
				f.write("flooder", 4)
				f.book.Bounded(0, nil)
				var log output.Buffer
				blind := blindUntil{f.topic, time.Now().Add(11 * time.Minute)}
				for n := range 1 + others {
					s := NewSurplus(SurplusConfig{Holder: string(rune('a' + n))}, f.intake, f.book, blind, zerolog.New(&log))
					go func() {
						if err := s.Run(t.Context()); err != nil {
							t.Error(err)
						}
					}()
					time.Sleep(3 * time.Second)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if failed, over := strings.Count(log.String(), "desk work failed"), strings.Count(log.String(), "desk work recovered"); failed != 1+others || over != 0 {
					t.Errorf("%d failed, %d recovered\n%s", failed, over, log.String())
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
				if over := strings.Count(log.String(), "desk work recovered"); over != 1+others {
					t.Errorf("%d recovered\n%s", over, log.String())
				}
			})
		})
	}
}

// blindUntil is a topic that the brokers do not let a desk look at before a moment.
type blindUntil struct {
	*log1
	moment time.Time
}

func (b blindUntil) Retention(ctx context.Context, topic string) (Retention, error) {
	if time.Now().Before(b.moment) {
		return Retention{}, errors.New("the brokers refuse this desk")
	}
	return b.log1.Retention(ctx, topic)
}

// TestSurplus_ManyRanges: a desk comes to each range in its turn, however many older ones wait for room.
func TestSurplus_ManyRanges(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 4)
	if err := f.book.OrderSurplus(t.Context(), 1, ledger.Actor{Name: "mara", Why: "now"}); err != nil {
		t.Fatal(err)
	}
	f.duty.book = crowd{f.book, mostRanges}
	f.turn()
	f.turn()
	f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
}
