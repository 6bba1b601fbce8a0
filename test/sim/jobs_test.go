//go:build synctests

package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// order is a job of an operator: a retry, or a close, of all letters that match a filter.
type order struct {
	At     time.Duration
	Closed bool
	Kind   envelope.Kind
	States []ledger.State
	Limit  int64
	Rate   float64
	Twice  bool          // made twice
	Stop   time.Duration // the operator stops it after this; 0: does not
	Resume time.Duration // the operator resumes it after this, whoever stopped it; 0: does not
}

// ordered is a job that was created, with its letters. Letters in sure matched before and after the creation, those
// in perhaps at one of the two times.
type ordered struct {
	id            int64
	by            string
	sure, perhaps map[string]bool
}

// orders draws jobs, and kills desks while they carry them out.
func (s *schedule) orders(d dice) {
	for range min(s.Desks, 1) * one(d, 0, 1, 1, 2, 3) {
		o := order{
			At: d.between(time.Second, 14*time.Second), Closed: d.IntN(4) == 0, Kind: one(d, "", "", envelope.Data, envelope.Decode, envelope.Conflict),
			States: one(d, nil, nil, []ledger.State{ledger.Pending}, []ledger.State{ledger.Failed}),
			Limit:  one[int64](d, 0, 0, 0, 1, 4), Rate: one[float64](d, 0, 0, 5), Twice: d.IntN(4) == 0,
			Stop: one(d, 0, 0, 0, d.between(0, 4*time.Second)), Resume: one(d, 0, d.between(time.Second, 6*time.Second)),
		}
		s.Orders = append(s.Orders, o)
		for range d.IntN(3) {
			e := event{At: o.At + d.between(0, 5*time.Second), What: killAtWork.name, Slot: len(s.Starts) - 1 - d.IntN(s.Desks), N: d.IntN(4), Arg: one(d, "before", "after"),
				For: d.between(200*time.Millisecond, 9*time.Second)}
			s.Events = append(s.Events, e)
			s.Healed = max(s.Healed, e.At+e.For)
		}
	}
}

// killAtWork kills a desk at one of the next calls of the ledger for a job. Only schedules with jobs draw it.
var killAtWork = evil{"kill in a job", nil, func(w *world, e event) func() {
	if p := w.slots[e.Slot].process(); p != nil {
		w.slots[e.Slot].strike(0, e.Arg == "before", e.For, (*process).kill)
		p.only(e.N, jobCalls)
	}
	return nothing
}}

// jobCalls are the calls by which jobs make progress. TakeJob is left out, because desks call it all the time.
var jobCalls = []string{"ledger KeepJob", "ledger EndJob", "ledger FirstEnds", "ledger RetryMatching", "ledger ResolveMatching"}

// order creates a job.
func (w *world) order(o order) {
	for range 1 + b2i(o.Twice) {
		filter := ledger.Filter{Kind: o.Kind, States: o.States}
		made := ordered{by: fmt.Sprint("operator of job ", len(w.ordered)+1), sure: map[string]bool{}, perhaps: map[string]bool{}}
		act := ledger.Retried
		if o.Closed {
			act = ledger.Closed
		}
		before := w.matching(filter)
		j, err := w.book.CreateJob(context.Background(), ledger.Job{Act: act, Filter: filter, Rate: o.Rate, Limit: o.Limit, Operator: made.by, Reason: "the seed says so"})
		if err != nil {
			panic(err) // it cannot fail
		}
		for id := range w.matching(filter) {
			made.sure[id], made.perhaps[id] = before[id], true
		}
		maps.DeleteFunc(made.sure, func(_ string, sure bool) bool { return !sure })
		maps.Copy(made.perhaps, before)
		made.id = j.ID
		w.second(j)
		w.ordered = append(w.ordered, made)
		w.history.add("operator orders", "", fmt.Sprintf("job %d: %s, %d letters, at most %d, %v/s", j.ID, act, j.Matched, o.Limit, o.Rate))
	}
}

// second has another person approve a job that waits for one.
func (w *world) second(j ledger.Job) {
	if j.State != ledger.JobProposed {
		return
	}
	if _, err := w.book.ApproveJob(context.Background(), j.ID, ledger.Actor{Name: "second person", Why: "the seed says so"}); err != nil {
		panic(err) // it cannot fail
	}
}

// matching returns the movable letters that match a filter.
func (w *world) matching(f ledger.Filter) map[string]bool {
	ids := map[string]bool{}
	for _, e := range w.proof().Letters {
		free := e.State == ledger.Pending || e.State == ledger.Failed
		if free && (f.Kind == "" || e.Cause.Kind == f.Kind) && (len(f.States) == 0 || slices.Contains(f.States, e.State)) {
			ids[e.ID] = true
		}
	}
	return ids
}

// turn stops or resumes the n-th job, if there is one.
func (w *world) turn(n int, act string, turn func(context.Context, int64, ledger.Actor) (ledger.Job, error)) {
	if n >= len(w.ordered) {
		return
	}
	j, err := turn(context.Background(), w.ordered[n].id, ledger.Actor{Name: "operator", Why: "the seed says so"})
	w.history.add("operator "+act, "", fmt.Sprintf("job %d: %s %v", j.ID, j.State, err))
	if err == nil {
		w.second(j)
	}
}

func (w *world) stopJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return w.book.StopJob(ctx, id, by.Why, by)
}

// job returns a job in its present state.
func (w *world) job(id int64) ledger.Job {
	j, err := w.book.Job(context.Background(), id)
	if err != nil {
		panic(err) // the job exists
	}
	return j
}

// jobsUnsettled names a job that has not ended.
func (w *world) jobsUnsettled() string {
	for _, o := range w.ordered {
		if j := w.job(o.id); j.State != ledger.JobDone && j.State != ledger.JobStopped {
			return fmt.Sprintf("job %d is %s: %s", j.ID, j.State, j.Note)
		}
	}
	return ""
}

// judgeJobs checks that every job had one effect on each of its dead letters, and reports the jobs.
func (w *world) judgeJobs(proof ledger.Proof) {
	for _, o := range w.ordered {
		j := w.job(o.id)
		for _, wrong := range o.judge(j, proof) {
			w.found(fmt.Sprintf("a job has one effect for each dead letter that it names: job %d, %s, %s, %q: %s", j.ID, j.Act, j.State, j.Note, wrong))
		}
	}
}

// judge returns the errors of a job that has ended.
func (o *ordered) judge(j ledger.Job, proof ledger.Proof) (wrong []string) {
	wrongly := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	moved, ends := o.effects(j, proof, wrongly)
	for _, id := range slices.Sorted(maps.Keys(moved)) {
		if moved[id] > 1 {
			wrongly("it moved %.12s %d times", id, moved[id])
		}
		if !o.perhaps[id] {
			wrongly("it moved %.12s, which it does not name", id)
		}
	}
	n := int64(len(moved))
	if j.Matched < int64(len(o.sure)) || j.Matched > int64(len(o.perhaps)) {
		wrongly("it says that %d matched, %d to %d did", j.Matched, len(o.sure), len(o.perhaps))
	}
	if j.Sent != n || j.Limit > 0 && n > j.Limit {
		wrongly("it says that it moved %d, at most %d; it moved %d", j.Sent, j.Limit, n)
	}
	if said := [3]int64{j.Stored, j.Dead, j.Refused}; said != ends {
		wrongly("it says that %v of its retries were stored, died, were refused; %v were", said, ends)
	}
	if j.State != ledger.JobDone || j.Limit > 0 && n >= j.Limit {
		return wrong
	}
	for _, id := range slices.Sorted(maps.Keys(o.sure)) {
		if moved[id] == 0 && !movedMeanwhile(id, j, proof) {
			wrongly("it is done and skipped %.12s", id)
		}
	}
	return wrong
}

// effects counts how often a job moved each letter, and the ends of its retries: stored, dead, refused.
func (o *ordered) effects(j ledger.Job, proof ledger.Proof, wrongly func(string, ...any)) (moved map[string]int, ends [3]int64) {
	moved = map[string]int{}
	for i := range proof.Sendings {
		s := &proof.Sendings[i]
		if (s.By == o.by) != (s.Job == j.ID) {
			wrongly("retry %d of %.12s is by %q and of job %d", s.ID, s.LetterID, s.By, s.Job)
		}
		if s.Job != j.ID {
			continue
		}
		moved[s.LetterID]++
		switch s.Outcome {
		case ledger.SendingStored:
			ends[0]++
		case ledger.SendingDead:
			ends[1]++
		case ledger.SendingRefused, ledger.SendingWithdrawn:
			ends[2]++
		}
	}
	retries := 0
	for i := range proof.Lines {
		switch l := &proof.Lines[i]; {
		case l.By != o.by:
		case l.Act == ledger.Closed && j.Act == ledger.Closed:
			moved[l.LetterID]++
		case l.Act == ledger.Retried && j.Act == ledger.Retried:
			retries++
		default:
			wrongly("it did to %.12s: %s", l.LetterID, l.Act)
		}
	}
	if sent := ends[0] + ends[1] + ends[2]; int64(retries) != sent {
		wrongly("it retried %d times, and %d of its retries have ended", retries, sent)
	}
	return moved, ends
}

// movedMeanwhile reports whether someone else moved or edited a letter during a job, so that the job had to leave it
// alone.
func movedMeanwhile(id string, j ledger.Job, proof ledger.Proof) bool {
	return slices.ContainsFunc(proof.Lines, func(l ledger.Audit) bool {
		return l.LetterID == id && !l.At.Before(j.CreatedAt) && !l.At.After(j.EndedAt)
	})
}
