//go:build synctests

package sim

import (
	"cmp"
	"context"
	"sync"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/history/complete"
	"docket/internal/kafka"
	"docket/internal/programs/desk"
	"docket/internal/record/home"
	"docket/internal/service/app"
	"docket/internal/testkit/completetest"
)

// asks is a reader that asks all the time how complete its answers are. It has the watch of the desk, without a margin
// for clocks, as all clocks of a schedule are one.
type asks struct {
	w      *world
	ends   map[string]map[int32]int64 // that the last look found
	claims []verify.Claim
}

// asksEvery is between two looks at Kafka, and lookWithin limits a look.
const (
	asksEvery  = 1500 * time.Millisecond
	lookWithin = 5 * time.Second
)

// run asks until the world closes.
func (a *asks) run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	a.w.running.Go(func() {
		<-a.w.closing
		stop()
	})
	s := a.w.slots[0].settings
	brokers, err := app.Kafka(s, "asks")
	if err != nil {
		a.w.found("the harness: " + err.Error())
		return
	}
	brokers.Dialer = a.w.wires.Dial
	client, err := kafka.NewReader(brokers)
	if err != nil {
		a.w.found("the harness: " + err.Error())
		return
	}
	defer client.Close()
	log := completetest.Note(client)
	c := desk.Watched(s)
	c.Dead[0].Group, c.Dead[1].Group = desks, desks // the settings of a consumer have no desk
	c.Margin, c.Within = -1, lookWithin
	watch := complete.NewWatch(c, log)
	answers := &complete.Answers{Status: func(context.Context) complete.Status { return watch.Status() }, Books: openLetters{a.w}}
	for ctx.Err() == nil {
		if err := watch.Look(ctx); err == nil { // else the status is of the last look
			a.ends = log.Last()
		}
		a.ask(ctx, answers)
		select {
		case <-ctx.Done():
		case <-time.After(asksEvery):
		}
	}
}

// ask asks for all decisions, and notes what the answer claims.
func (a *asks) ask(ctx context.Context, answers *complete.Answers) {
	said := answers.Begin(ctx, complete.Range{}).End(complete.Facts{Found: true})
	if said.CompleteUntil == nil {
		return
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	askedAll.Lock()
	askedAll.claims++
	if said.Parked != nil && said.DeadLettered != nil && *said.Parked+*said.DeadLettered > 0 {
		askedAll.counted++
	}
	if said.Spooled != nil {
		askedAll.unspooled++
	}
	askedAll.Unlock()
	a.claims = append(a.claims, verify.Claim{By: "a reader", At: time.Now(), Until: *said.CompleteUntil, Parked: said.Parked, DeadLettered: said.DeadLettered, Spooled: said.Spooled, Ends: a.ends})
}

// askedAll counts the claims of all schedules, those that counted something, and those that knew of no record in a spool.
var askedAll struct {
	sync.Mutex
	claims, counted, unspooled int
}

// told returns the claims so far.
func (a *asks) told() []verify.Claim {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return a.claims
}

// openLetters is the ledger's model, asked for dead letters that may become rows.
type openLetters struct{ w *world }

func (o openLetters) Waiting(ctx context.Context, _ complete.Range) (n int64, known, primary bool, err error) {
	left, err := o.w.book.SurplusSums(ctx)
	if err != nil {
		return 0, false, false, err
	}
	proof := o.w.proof()
	underWay := map[string]bool{}
	for i := range proof.Sendings {
		s := &proof.Sendings[i]
		underWay[s.LetterID] = underWay[s.LetterID] || !s.Published.Stamp.IsZero() && s.EndedAt.IsZero()
	}
	for i := range proof.Letters {
		if e := &proof.Letters[i]; e.State != ledger.Resolved || underWay[e.ID] {
			n += int64(max(1, e.Refused))
		}
	}
	return n, left.Letters[ledger.SurplusOpen] == 0, true, nil
}

// moved returns the homes of decisions that the final state does not show any more: those of dropped letters, and those
// of dead letters that a desk put back.
func (w *world) moved(ev *evidence) (all []verify.Forwarded) {
	for _, d := range ev.truth.Decisions() {
		for _, l := range ev.letters[d.Place] {
			f := *l.Forwarded
			f.Place = d.Place
			all = append(all, f)
		}
	}
	of := map[verify.Place][]verify.Forwarded{}
	origins := map[string][]verify.Place{} // of a letter; one that is put back and fails again is the same letter
	for i := range ev.Forwarded {
		f := &ev.Forwarded[i]
		of[f.Place] = append(of[f.Place], *f)
		if id := cmp.Or(f.Entry, f.ID); f.Home == home.DeadLetter || f.Home == home.Exhausted {
			origins[id] = append(origins[id], f.Place)
		}
	}
	for _, p := range w.putBack {
		known := false
		for _, at := range origins[p.letter] {
			for _, f := range of[at] {
				f.Place, known = p.at, true
				all = append(all, f)
			}
		}
		if known {
			continue
		}
		all = append(all, verify.Forwarded{
			Place: p.at, Home: home.DeadLetter, FailedAt: p.since, Stamp: p.found.Stamp,
			Found: p.found.Topic, At: verify.Position{Partition: p.found.Partition, Offset: p.found.Offset},
		})
	}
	return all
}

// putBack is a dead letter's record on a source topic.
type putBack struct {
	at     verify.Place
	letter string
	since  time.Time    // it failed first; zero: not known
	found  ledger.Found // in its dead-letter topic; it was in a spool before
}
