//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
)

// rounds is how often a race is run.
const rounds = 100

// desks opens the ledger n times more.
func (d *ledgerDB) desks(n int) []*ledgerdb.Ledger {
	d.T.Helper()
	var all []*ledgerdb.Ledger
	for range n {
		all = append(all, ledgerdb.New(open(d.T, d.URL, 0).DB))
	}
	return all
}

// together runs do n times at once.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

// sound is that nothing is there that must never be.
func (d *ledgerDB) sound() {
	d.T.Helper()
	for what, sql := range broken {
		var n int
		if d.Query(d.T, sql, &n); n != 0 {
			d.T.Errorf("%d %s", n, what)
		}
	}
}

func TestRaces_OneDecides(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	const people = 4
	desks := d.desks(people)
	for round := range int64(rounds) {
		a, b := letter(2*round, one), letter(2*round+1, two)
		d.Entered(a, b)
		ids := []string{a.ID, b.ID}
		outcomes := make([][]ledger.Outcome, people)
		together(people, func(i int) {
			asked, by := ids, ledger.Actor{Name: fmt.Sprint("person ", i), Why: "because"}
			if i%2 == 1 {
				asked = []string{b.ID, a.ID}
			}
			var err error
			if i < 2 || round%2 == 0 {
				outcomes[i], err = desks[i].Retry(context.Background(), asked, soon, by)
			} else {
				outcomes[i], err = desks[i].Resolve(context.Background(), asked, by)
			}
			if err != nil {
				t.Error(err)
			}
		})
		won := map[string]int{}
		for _, o := range slices.Concat(outcomes...) {
			var refused *ledger.RefusedError
			if o.Err == nil {
				won[o.ID]++
			} else if !errors.As(o.Err, &refused) {
				t.Error(o.Err)
			}
		}
		same(t, won, map[string]int{a.ID: 1, b.ID: 1})
	}
	same(t, d.Text(`SELECT count(*)::text FROM dead_letter_audit WHERE act IN ('retried', 'closed')`), fmt.Sprint(2*rounds))
	same(t, d.Text(`SELECT (count(*) = (SELECT count(*) FROM dead_letters WHERE state = 'PROCESSING'))::text FROM dead_letter_outbox`), "true")
	d.sound()
}

func TestRaces_IntakesEnterOnce(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	const intakes, size = 4, 30
	desks := d.desks(intakes)
	for round := range int64(rounds) {
		var letters []ledger.Letter
		for i := range int64(size) {
			l := letter(round*size*2+i, fmt.Sprint(i))
			l.Cause.Code = fmt.Sprint(round, "-", i%5) // groups that are new, too
			letters = append(letters, l)
		}
		ids := []string{letters[0].ID, letters[1].ID}
		d.Entered(letters[:2]...)
		d.Retried(ids...)
		for i, s := range d.Claimed("r", 2) {
			place := round*size*2 + size + int64(i)
			d.Placed("r", ledger.Placed{SendingID: s.ID, Partition: int32(place % 4), Offset: place})
			letters = append(letters, home(s, place), home(s, 1_000_000+place))
		}
		counts := make([]ledger.EnteredCount, intakes)
		together(intakes, func(i int) {
			mine := slices.Clone(letters)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			var err error
			if counts[i], err = desks[i].Enter(context.Background(), mine, atMost, ledger.Actor{Name: "desk"}); err != nil {
				t.Error(err)
			}
		})
		var sum ledger.EnteredCount
		for _, c := range counts {
			sum.New, sum.Known, sum.DeadAgain = sum.New+c.New, sum.Known+c.Known, sum.DeadAgain+c.DeadAgain
			sum.Groups = append(sum.Groups, c.Groups...)
		}
		if sum.New != size-2 || sum.DeadAgain != 2 || sum.New+sum.Known+sum.DeadAgain != intakes*len(letters) || len(sum.Groups) < 3 || len(sum.Groups) > 6 {
			t.Fatalf("round %d: %d new, %d known, %d dead again, %d groups", round, sum.New, sum.Known, sum.DeadAgain, len(sum.Groups))
		}
	}
	same(t, d.Text(`SELECT max(attempts)::text FROM dead_letters`), "1")
	d.sound()
}

func TestRaces_RelaysClaimOnceInOrder(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	const relays, size = 4, 24
	desks := d.desks(relays)
	for round := range int64(rounds / 4) {
		var ids []string
		var letters []ledger.Letter
		for i := range int64(size) {
			l := letter(round*size+i, fmt.Sprint(i)) // of three keys
			letters, ids = append(letters, l), append(ids, l.ID)
		}
		d.Entered(letters...)
		d.Retried(ids...)
		var mu sync.Mutex
		published, inFlight := map[string][]int64{}, map[string]string{}
		taken := map[int64]int{}
		left := size
		place := round*size + 1_000_000
		together(relays, func(i int) {
			holder := fmt.Sprint("relay ", i)
			for done := false; !done; {
				sent, err := desks[i].Claim(context.Background(), holder, 3, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				var placed []ledger.Placed
				for _, s := range sent {
					key := string(s.Key)
					if who := inFlight[key]; who != "" && who != holder {
						t.Errorf("%s has key %s while %s has it", holder, key, who)
					}
					inFlight[key] = holder
					taken[s.ID]++
					published[key] = append(published[key], s.ID)
					place++
					placed = append(placed, ledger.Placed{SendingID: s.ID, Partition: int32(place % 4), Offset: place})
				}
				mu.Unlock()
				if _, err := desks[i].Desks(context.Background(), soon); err != nil { // as long as publishing takes
					t.Error(err)
				}
				mu.Lock()
				for _, s := range sent {
					delete(inFlight, string(s.Key))
				}
				left -= len(sent)
				done = left <= 0
				mu.Unlock()
				if err := desks[i].Published(context.Background(), holder, placed, soon); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for key, ids := range published {
			if !slices.IsSorted(ids) {
				t.Errorf("key %s was published in the order %v", key, ids)
			}
		}
		if len(taken) != size {
			t.Errorf("%d rows were claimed, not %d", len(taken), size)
		}
		for id, n := range taken {
			if n != 1 {
				t.Errorf("row %d was claimed %d times", id, n)
			}
		}
	}
	d.sound()
}

// All that can happen to letters happens at once, and whoever waits for whom, nothing fails and all adds up.
func TestRaces_EverythingAddsUp(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	const size = 40
	var letters []ledger.Letter
	var ids []string
	for i := range int64(size) {
		l := letter(i, fmt.Sprint(i))
		letters, ids = append(letters, l), append(ids, l.ID)
	}
	d.Entered(letters...)
	desks := d.desks(8)
	ctx := context.Background()
	before := time.Now().Add(time.Hour)
	acts := []func(l *ledgerdb.Ledger, n int64) error{
		func(l *ledgerdb.Ledger, n int64) error {
			_, err := l.Retry(ctx, ids[n%size:], 5*time.Millisecond, ann)
			return err
		},
		func(l *ledgerdb.Ledger, n int64) error { // publishes, and all that is published dies
			sent, err := l.Claim(ctx, "r", 20, 20*time.Millisecond)
			var placed []ledger.Placed
			var dead []ledger.Letter
			for i, s := range sent {
				place := 1_000_000 + n*100 + int64(i)
				placed = append(placed, ledger.Placed{SendingID: s.ID, Partition: int32(place % 4), Offset: place})
				dead = append(dead, home(s, place))
			}
			if err == nil {
				err = l.Published(ctx, "r", placed, time.Millisecond)
			}
			if err == nil {
				_, err = l.Enter(ctx, dead, 1000, ann)
			}
			return err
		},
		func(l *ledgerdb.Ledger, n int64) error { // publishes, and half of it is stored
			sent, err := l.Claim(ctx, "s", 5, 20*time.Millisecond)
			for i, s := range sent {
				place := 2_000_000 + n*100 + int64(i)
				err = errors.Join(err, l.Published(ctx, "s", []ledger.Placed{{SendingID: s.ID, Partition: int32(place % 4), Offset: place}}, time.Millisecond))
				if i%2 == 0 {
					err = errors.Join(err, l.Stored(ctx, []int64{s.ID}, []string{"there"}, ann))
				}
			}
			return err
		},
		func(l *ledgerdb.Ledger, _ int64) error { _, err := l.EndLeases(ctx, ann); return err },
		func(l *ledgerdb.Ledger, n int64) error {
			_, err := l.RetryMatching(ctx, ledger.Filter{Kind: "data"}, before, 7, 5*time.Millisecond, ann)
			return err
		},
		func(l *ledgerdb.Ledger, n int64) error { return l.Compact(ctx) },
		func(l *ledgerdb.Ledger, n int64) error {
			sent, err := l.Claim(ctx, "u", 3, 20*time.Millisecond)
			for _, s := range sent {
				if e := l.Unpublished(ctx, "u", s.ID, "timeout", time.Millisecond, n%3 == 0); e != nil && !errors.Is(e, ledger.ErrLost) {
					err = errors.Join(err, e)
				}
			}
			return err
		},
		func(l *ledgerdb.Ledger, n int64) error {
			err := l.Edit(ctx, ids[n%size], "", fmt.Append(nil, n), "diff", 0, ann)
			var refused *ledger.RefusedError
			if errors.As(err, &refused) {
				return nil
			}
			return err
		},
	}
	together(len(acts), func(i int) {
		for n := range int64(60) {
			if err := acts[i](desks[i], n); err != nil {
				t.Errorf("act %d: %v", i, err)
				return
			}
		}
	})
	d.sound()
	same(t, d.Text(`SELECT count(*)::text FROM dead_letters d WHERE attempts <> (SELECT count(*) FROM dead_letter_audit a WHERE a.dead_letter_id = d.dead_letter_id AND act = 'died')`), "0")
}
