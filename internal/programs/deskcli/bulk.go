package deskcli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli"
)

// unasked is how many letters may be moved at once where nobody can be asked and --yes was not given.
const unasked = 100

// movable is the filter of what can be retried and resolved.
func movable(f ledger.Filter) (ledger.Filter, error) {
	if len(f.States) == 0 {
		f.States = []ledger.State{ledger.Pending, ledger.Failed}
	}
	for _, state := range f.States {
		if state != ledger.Pending && state != ledger.Failed {
			return f, misuse("%s dead letters cannot be changed by hand: only PENDING and FAILED ones", state)
		}
	}
	return f, nil
}

// bulk writes a job down and watches it.
func (s *session) bulk(act ledger.Act, d *deciding) (work, error) {
	filter, err := d.filter.filter(s.now())
	if err != nil {
		return nil, err
	}
	if filter, err = movable(filter); err != nil {
		return nil, err
	}
	by, err := s.actor(d, "")
	return func(ctx context.Context) error { return s.makeJob(ctx, act, d, filter, by) }, err
}

func (s *session) makeJob(ctx context.Context, act ledger.Act, d *deciding, filter ledger.Filter, by ledger.Actor) error {
	counts, err := s.sys.Book.Counts(ctx, filter)
	if err != nil {
		return fmt.Errorf("count the dead letters that match: %w", err)
	}
	n := counts[ledger.Pending] + counts[ledger.Failed]
	if agreed, err := s.agreed(ctx, act, d, filter, counts, n); err != nil || !agreed {
		return err
	}
	job, err := s.sys.Book.CreateJob(ctx, ledger.Job{Act: act, Filter: filter, Rate: d.rate, Limit: d.limit, Operator: by.Name, Reason: by.Why})
	if err != nil {
		return fmt.Errorf("create the job: %w", err)
	}
	if !s.asJSON {
		s.say("job %d: %s %s\n", job.ID, verbs[act].doing, which(filter))
	}
	return s.watch(ctx, job, d.wait, d.detach)
}

// verbs are how an act is called.
var verbs = map[ledger.Act]struct{ name, doing, ask string }{
	ledger.Retried: {"retry", "retrying", "Retry"},
	ledger.Closed:  {"resolve", "resolving", "Resolve"},
}

// agreed says how many would be moved and asks whether they are to be.
func (s *session) agreed(ctx context.Context, act ledger.Act, d *deciding, filter ledger.Filter, counts map[ledger.State]int64, n int64) (bool, error) {
	if n == 0 {
		s.tell("no PENDING or FAILED dead letters match; nothing was changed\n")
		l := s.beside(ctx)(true)
		if s.asJSON {
			s.print(struct {
				Matched int64      `json:"matched"`
				Job     *jsonJob   `json:"job"`
				Ledger  jsonLedger `json:"ledger"`
			}{Ledger: l})
		}
		s.noteLedger(l)
		return false, nil
	}
	s.tell("%s (%s) %s %s\n", counted(n, "dead letter"), states(counts), map[bool]string{true: "matches", false: "match"}[n == 1], which(filter))
	moves := n
	if d.limit > 0 {
		moves = min(n, d.limit)
	}
	switch {
	case d.yes:
		return true, nil
	case s.asks():
		ok, err := s.yes(ctx, verbs[act].ask+" "+grouped(moves)+paced(d.rate)+"?", false)
		if err == nil && !ok {
			s.tell("nothing was changed\n")
			return false, endError(cli.Failed)
		}
		return ok, err
	case moves > unasked:
		return false, misuse("this would change %s dead letters, and without a terminal nobody can confirm: give --yes, or --limit %d", grouped(moves), unasked)
	}
	return true, nil
}

func paced(rate float64) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf(", %g per second", rate)
}

// dryRun tries what would be retried.
func (s *session) dryRun(d *deciding, args []string) (work, error) {
	filter, err := d.filter.filter(s.now())
	if err == nil {
		filter, err = movable(filter)
	}
	return func(ctx context.Context) error { return s.try(ctx, d, args, filter) }, err
}

func (s *session) try(ctx context.Context, d *deciding, args []string, filter ledger.Filter) error {
	if s.sys.Trial == nil {
		return misuse("this build cannot do dry runs")
	}
	p := s.progress("testing")
	told := func(done, total int64) { p.at(done, total, "") }
	var result worker.TrialResult
	var err error
	if len(args) > 0 {
		var ids []string
		for _, arg := range args {
			id, e := s.whole(ctx, arg)
			if e != nil {
				return e
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		result, err = s.sys.Trial.RunIDs(ctx, ids, told)
	} else {
		result, err = s.sys.Trial.Run(ctx, filter, d.limit, told)
	}
	p.end()
	if err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	err = s.tried(result)
	if !s.asJSON && result.Unwell == nil && result.Would+result.There > 0 {
		s.tell("to retry them:\n  %s\n", join("docket dlq retry", again(args, d, filter), s.operatorFlag()))
	}
	return err
}

// again are the words that choose what a dry run was about.
func again(args []string, d *deciding, filter ledger.Filter) string {
	if len(args) > 0 {
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = shell(plainAll(arg))
		}
		return strings.Join(words, " ")
	}
	text := chosen(filter)
	if d.limit > 0 {
		text += fmt.Sprintf(" --limit %d", d.limit)
	}
	return text + " --reason '...'"
}

// tried says what a dry run found. Exit 1: not all would be stored.
func (s *session) tried(r worker.TrialResult) error {
	switch findings := r.Findings(); {
	case s.asJSON:
		s.print(r)
	case len(findings) < 3:
		s.say("dry run, nothing was changed: %s\n", plainAll(r.String()))
	default:
		s.say("dry run of %s, nothing was changed:\n", grouped(r.Total))
		for _, finding := range findings {
			s.say("  %s\n", plainAll(finding))
		}
	}
	if !s.asJSON && r.Unwell == nil {
		for _, f := range r.StillFail {
			s.tell("to explain %s: docket classify %s\n", plainAll(f.Code), shell(plainAll(f.Code)))
		}
	}
	if r.Unwell != nil || r.Fails() > 0 {
		return endError(cli.Failed)
	}
	return nil
}
