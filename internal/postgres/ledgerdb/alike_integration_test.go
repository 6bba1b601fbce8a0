//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/testkit/ledgermodel"
)

// alike plays the same calls on the ledger and on its model in memory. Ids and marks of retries are each one's own: the n-th
// of the one is the n-th of the other.
type alike struct {
	d      *ledgerDB
	conn   *pgx.Conn
	model  *ledgermodel.Book
	tables []ledger.Sending // in the order of the outbox
	own    []ledger.Sending // the model's
	jobs   [][2]ledger.Job  // of the two, the oldest first
	offset int64
	deaths [][2]ledger.Letter // that were entered, for each of the two
	wanted [][2]int64         // proposals
	hour   time.Time
}

// TestAlike_ModelInMemory keeps the ledger of the simulation from doing what the tables do not.
func TestAlike_ModelInMemory(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	conn, err := pgx.Connect(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rapid.Check(t, func(rt *rapid.T) {
		d.Exec(t, `SET session_replication_role = replica; TRUNCATE dead_letters, dead_letter_cases, dead_letter_rule_acts, dead_letter_proposals, dead_letter_decisions, dead_letter_audit, dead_letter_edits, dead_letter_outbox, dead_letter_counts, dead_letter_days, dead_letter_duties, dead_letter_notes,
			dead_letter_jobs, dead_letter_job_ends, dead_letter_growth, dead_letter_surplus`)
		a := &alike{d: d, conn: conn, offset: 1000, hour: noon.Truncate(time.Hour)}
		most := rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "letters of a client in an hour")
		d.Bounded(most)
		a.model = ledgermodel.New().Keep(-2*time.Hour).Bounded(most, func() time.Time { return a.hour })
		two := rapid.Bool().Draw(rt, "two editors")
		if d.FourEyes(two); two {
			a.model.FourEyes()
		}
		a.pass(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"": a.check, "enter": a.enter, "again": a.again, "retry": a.retry, "schedule": a.schedule, "resolve": a.resolve, "claim": a.claim, "publish": a.publish,
			"edit": a.edit, "propose": a.propose, "approve": a.approve, "reject": a.reject, "job": a.job, "jobs go on": a.goOn, "take a job": a.take, "keep a job": a.keep, "end a job": a.endJob, "turn a job": a.turn, "first ends": a.firstEnds,
			"unpublish": a.unpublish, "die": a.die, "await": a.await, "stored": a.stored, "overtaken": a.overtaken, "mark": a.mark, "leases": a.leases, "claims": a.claims, "remove": a.remove, "duty": a.duty,
			"an hour passes": a.pass, "enter what was left": a.late, "archive what was left": a.shelve, "order": a.order,
		})
	})
}

func (a *alike) same(t *rapid.T, what string, tables, model any) {
	t.Helper()
	if diff := cmp.Diff(tables, model); diff != "" {
		t.Fatalf("%s: -ledger +model:\n%s", what, diff)
	}
}

// sameErr holds the kinds of two errors against each other.
func (a *alike) sameErr(t *rapid.T, what string, tables, model error) {
	t.Helper()
	kind := func(err error) string {
		var refused *ledger.RefusedError
		var proposal *ledger.ProposalError
		switch {
		case err == nil:
			return ""
		case errors.As(err, &proposal):
			return "proposal: " + string(proposal.Because)
		case errors.Is(err, ledger.ErrLost):
			return "lost"
		case errors.Is(err, ledger.ErrNotFound):
			return "not found"
		case errors.As(err, &refused):
			return "refused, it is " + string(refused.State)
		}
		return err.Error()
	}
	a.same(t, what, kind(tables), kind(model))
}

func (a *alike) pool() (pool []ledger.Letter) {
	for i := range int64(5) {
		pool = append(pool, letter(i, fmt.Sprint(i)))
	}
	// One whose record has two decisions, one without a key and without a place, and one that three refused decisions share.
	two := letter(5, `[{"decision_id":"a","timestamp":"2024-05-01T12:00:00Z"},{"decision_id":"b","timestamp":"2024-05-01T12:00:00Z"}]`)
	none := letter(6, "6")
	none.Key, none.Cause.Kind = nil, envelope.Decode
	pool = append(pool, two, none, resting(7, "[\n1,2,3]", ledger.Held{Place: 2, ID: "b"}))
	for i := range pool {
		pool[i].Client = []string{"", "edge"}[i%2]
		pool[i].FirstFailedAt = noon.Add(time.Duration(i) * time.Millisecond) // a schedule goes by it
	}
	return pool
}

func (a *alike) put(t *rapid.T, tables, model []ledger.Letter) {
	n, err := a.d.Enter(context.Background(), tables, atMost, ann)
	m, errOfModel := a.model.Enter(context.Background(), model, atMost, ann)
	a.sameErr(t, "enter", err, errOfModel)
	n.Groups = nil
	a.same(t, "entered", n, m)
}

func (a *alike) enter(t *rapid.T) {
	batch := rapid.SliceOfN(rapid.SampledFrom(a.pool()), 1, 8).Draw(t, "letters")
	a.put(t, batch, batch)
}

func (a *alike) again(t *rapid.T) {
	if len(a.deaths) == 0 {
		return
	}
	var tables, model []ledger.Letter
	for _, pair := range rapid.SliceOfN(rapid.SampledFrom(a.deaths), 1, 4).Draw(t, "deaths") {
		tables, model = append(tables, pair[0]), append(model, pair[1])
	}
	a.put(t, tables, model)
}

func (a *alike) ids(t *rapid.T) (ids []string) {
	for _, l := range rapid.SliceOfN(rapid.SampledFrom(append(a.pool(), ledger.Letter{ID: "none"})), 1, 4).Draw(t, "ids") {
		ids = append(ids, l.ID)
	}
	return ids
}

func (a *alike) decided(t *rapid.T, tables, model []ledger.Outcome, errs ...error) {
	a.sameErr(t, "decide", errs[0], errs[1])
	a.same(t, "outcomes", len(tables), len(model))
	for i := range tables {
		a.same(t, "outcome", tables[i].ID, model[i].ID)
		a.sameErr(t, "outcome of "+tables[i].ID, tables[i].Err, model[i].Err)
	}
}

func (a *alike) retry(t *rapid.T) {
	ids := a.ids(t)
	tables, err := a.d.Retry(context.Background(), ids, soon, ann)
	model, errOfModel := a.model.Retry(context.Background(), ids, soon, ann)
	a.decided(t, tables, model, err, errOfModel)
}

func (a *alike) schedule(t *rapid.T) {
	f := ledger.Filter{
		Kind:          rapid.SampledFrom([]envelope.Kind{"", envelope.Data, envelope.Decode}).Draw(t, "kind"),
		AttemptsBelow: rapid.IntRange(0, atMost).Draw(t, "attempts"),
	}
	if rapid.Bool().Draw(t, "pending") {
		f.States = []ledger.State{ledger.Pending}
	}
	n, before := rapid.IntRange(1, 4).Draw(t, "n"), time.Now().Add(time.Hour)
	tables, err := a.d.RetryMatching(context.Background(), f, before, n, soon, ann)
	model, errOfModel := a.model.RetryMatching(context.Background(), f, before, n, soon, ann)
	a.sameErr(t, "retry by filter", err, errOfModel)
	a.same(t, "retried by filter", len(tables), len(model))
}

func (a *alike) resolve(t *rapid.T) {
	ids := a.ids(t)
	tables, err := a.d.Resolve(context.Background(), ids, ann)
	model, errOfModel := a.model.Resolve(context.Background(), ids, ann)
	a.decided(t, tables, model, err, errOfModel)
}

// number says which of the sendings each is; -1: none.
func number(ids []int64, all []ledger.Sending) (numbers []int) {
	for _, id := range ids {
		numbers = append(numbers, slices.IndexFunc(all, func(s ledger.Sending) bool { return s.ID == id }))
	}
	return numbers
}

func (a *alike) claim(t *rapid.T) {
	n, holder := rapid.IntRange(1, 4).Draw(t, "n"), a.holder(t)
	tables, err := a.d.Claim(context.Background(), holder, n, time.Hour)
	model, errOfModel := a.model.Claim(context.Background(), holder, n, time.Hour)
	a.sameErr(t, "claim", err, errOfModel)
	of := func(claimed []ledger.Sending, all []ledger.Sending) (told []string) {
		for _, s := range claimed {
			told = append(told, fmt.Sprint(number([]int64{s.ID}, all), s.LetterID, s.Topic, s.Tries, string(s.Key), string(s.Value), len(s.Headers), s.By))
		}
		return told
	}
	a.same(t, "claimed", of(tables, a.tables), of(model, a.own))
}

func (a *alike) holder(t *rapid.T) string {
	return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "holder")
}

// one draws a sending; -1: there is none, and the action is to do nothing.
func (a *alike) one(t *rapid.T) int {
	if len(a.tables) == 0 {
		return -1
	}
	return rapid.IntRange(0, len(a.tables)-1).Draw(t, "sending")
}

func (a *alike) publish(t *rapid.T) {
	i := a.one(t)
	if i < 0 {
		return
	}
	a.offset++
	at := func(id int64) []ledger.Placed {
		return []ledger.Placed{{SendingID: id, Partition: int32(a.offset % 4), Offset: a.offset}}
	}
	a.sameErr(t, "published", a.d.Published(context.Background(), "x", at(a.tables[i].ID), time.Hour), a.model.Published(context.Background(), "x", at(a.own[i].ID), time.Hour))
}

func (a *alike) unpublish(t *rapid.T) {
	i, giveUp, pause, holder := a.one(t), rapid.Bool().Draw(t, "give up"), rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "pause"), a.holder(t)
	if i < 0 {
		return
	}
	a.sameErr(t, "unpublished", a.d.Unpublished(context.Background(), holder, a.tables[i].ID, "timeout", pause, giveUp),
		a.model.Unpublished(context.Background(), holder, a.own[i].ID, "timeout", pause, giveUp))
}

// die brings a retried record back dead, by its mark, its place or both. It is whole, one decision of it, or two that share a letter.
func (a *alike) die(t *rapid.T) {
	i := a.one(t)
	if i < 0 {
		return
	}
	place, marked, part := a.tables[i].Published.Offset, rapid.Bool().Draw(t, "marked"), rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(t, "a part of it")
	if place == 0 || marked && rapid.Bool().Draw(t, "a copy") {
		a.offset++
		place = a.offset
	}
	value := a.own[i].Value
	both := [2]ledger.Letter{}
	for n, s := range []ledger.Sending{a.tables[i], a.own[i]} {
		s.Value, s.Key = value, a.own[i].Key
		l := home(s, place)
		l.Origin.Partition = int32(place % 4)
		switch {
		case part == "one" && a.own[i].LetterID == a.pool()[7].ID:
			l.Value, l.Origin.Index = []byte("1"), 0
		case part == "one":
			l.Value, l.Origin.Index = []byte(`{"decision_id":"b","timestamp":"2024-05-01T12:00:00Z"}`), 1
		case part == "two":
			l.Value, l.Origin.Index, l.Refused = []byte("[\n2,3]"), envelope.NoIndex, 2
		}
		if !marked {
			l.RetryOf = ""
		}
		l.ID, l.Cause.Code, l.FirstFailedAt = envelope.ID(l.Origin, l.Value), "23503", noon.Add(time.Duration(place)*time.Second+time.Duration(l.Origin.Index)*time.Millisecond) // no two at one time: which of them is tried first is open
		both[n] = l
	}
	a.deaths = append(a.deaths, both)
	a.put(t, []ledger.Letter{both[0], both[0]}, []ledger.Letter{both[1], both[1]})
}

func (a *alike) await(t *rapid.T) {
	a.lapse(t, false, true)
	n := rapid.IntRange(1, 4).Draw(t, "n")
	tables, err := a.d.Awaited(context.Background(), n)
	model, errOfModel := a.model.Awaited(context.Background(), n)
	a.sameErr(t, "awaited", err, errOfModel)
	var ids, own []int64
	of := func(awaited []ledger.Awaited, all []ledger.Sending) (told []string) {
		for _, w := range awaited {
			told = append(told, fmt.Sprint(number([]int64{w.ID}, all), w.LetterID, w.State, w.Children, w.Looks, string(w.Value), w.Published.Partition, w.Published.Offset))
		}
		return told
	}
	a.same(t, "awaited", of(tables, a.tables), of(model, a.own))
	for i := range tables {
		ids, own = append(ids, tables[i].ID), append(own, model[i].ID)
	}
	a.sameErr(t, "look again", a.d.LookAgain(context.Background(), ids, time.Hour), a.model.LookAgain(context.Background(), own, time.Hour))
}

// overtaken says of a retry and a letter that died that they belong together. Some of them do.
func (a *alike) overtaken(t *rapid.T) {
	i := a.one(t)
	if i < 0 || len(a.deaths) == 0 {
		return
	}
	pair := rapid.SampledFrom(a.deaths).Draw(t, "death")
	index := rapid.SampledFrom([]int{envelope.NoIndex, 0, 1}).Draw(t, "index")
	of := func(sending int64, letter string) []ledger.Possible {
		return []ledger.Possible{{SendingID: sending, LetterID: letter, Index: index}}
	}
	n, err := a.d.Overtaken(context.Background(), of(a.tables[i].ID, pair[0].ID), atMost, ann)
	m, errOfModel := a.model.Overtaken(context.Background(), of(a.own[i].ID, pair[1].ID), atMost, ann)
	a.sameErr(t, "overtaken", err, errOfModel)
	a.same(t, "overtaken", n, m)
}

func (a *alike) stored(t *rapid.T) {
	i := a.one(t)
	if i < 0 {
		return
	}
	a.sameErr(t, "stored", a.d.Stored(context.Background(), []int64{a.tables[i].ID}, []string{"there"}, ann), a.model.Stored(context.Background(), []int64{a.own[i].ID}, []string{"there"}, ann))
}

// mark marks rows of edited letters, or finds none: the table is empty.
func (a *alike) mark(t *rapid.T) {
	var rows []ledger.RowName
	if rapid.Bool().Draw(t, "no row") {
		rows = []ledger.RowName{{ID: "none", Time: noon, Came: []byte("none")}}
	}
	tables, all, err := a.d.Unmarked(context.Background(), 3)
	model, allOfModel, errOfModel := a.model.Unmarked(context.Background(), 3)
	a.sameErr(t, "unmarked", err, errOfModel)
	a.same(t, "unmarked in all", all, allOfModel)
	of := func(due []ledger.Unmarked, all []ledger.Sending) (told []string) {
		for _, u := range due {
			told = append(told, fmt.Sprint(number([]int64{u.ID}, all), u.LetterID, string(u.Value), u.Children, u.Tries))
		}
		slices.Sort(told) // two may be due at one time
		return told
	}
	if len(tables) < 3 {
		a.same(t, "unmarked", of(tables, a.tables), of(model, a.own))
	}
	i := a.one(t)
	if i < 0 {
		return
	}
	marked, missing, err := a.d.MarkEdited(context.Background(), a.tables[i].ID, rows)
	_, missingOfModel, errOfModel := a.model.MarkEdited(context.Background(), a.own[i].ID, rows)
	a.sameErr(t, "mark", err, errOfModel)
	a.same(t, "marked", marked, 0)
	a.same(t, "missing", missing, missingOfModel)
}

// lapse lets time pass for both.
func (a *alike) lapse(t *rapid.T, leases, claims bool) {
	sql := ""
	if leases {
		sql += `SET LOCAL session_replication_role = replica; UPDATE dead_letters SET lease_until = now() - interval '1 s' WHERE state = 'PROCESSING';
			UPDATE dead_letter_jobs SET lease_until = now() - interval '1 s' WHERE state = 'RUNNING';`
	}
	if claims {
		sql += `UPDATE dead_letter_outbox SET next_try_at = now() - interval '1 s', claimed_until = CASE WHEN claimed_until IS NOT NULL THEN now() - interval '1 s' END,
			look_at = CASE WHEN look_at IS NOT NULL THEN now() - interval '1 h' + outbox_id * interval '1 ms' END`
	}
	if _, err := a.conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
	a.model.Lapse(leases, claims)
}

func (a *alike) claims(t *rapid.T) { a.lapse(t, false, true) }

func (a *alike) leases(t *rapid.T) {
	a.lapse(t, true, false)
	n, err := a.d.EndLeases(context.Background(), ann)
	m, errOfModel := a.model.EndLeases(context.Background(), ann)
	a.sameErr(t, "end leases", err, errOfModel)
	a.same(t, "leases that ended", n, m)
}

func (a *alike) remove(t *rapid.T) {
	n, err := a.d.Remove(context.Background(), time.Now().Add(time.Hour), 100, ann)
	m, errOfModel := a.model.Remove(context.Background(), time.Now().Add(time.Hour), 100, ann)
	a.sameErr(t, "remove", err, errOfModel)
	a.same(t, "removed", n, m)
}

func (a *alike) duty(t *rapid.T) {
	name, holder := rapid.SampledFrom([]string{"schedule", "desk:x"}).Draw(t, "duty"), a.holder(t)
	every, done := rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "every"), rapid.Bool().Draw(t, "done")
	lease := rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Hour}).Draw(t, "lease")
	mine, err := a.d.Duty(context.Background(), name, holder, every, lease)
	own, errOfModel := a.model.Duty(context.Background(), name, holder, every, lease)
	a.sameErr(t, "duty", err, errOfModel)
	a.same(t, "duty", mine, own)
	if done {
		a.sameErr(t, "done", a.d.DutyDone(context.Background(), name, holder), a.model.DutyDone(context.Background(), name, holder))
	}
}

// check compares all that a checker would read.
func (a *alike) check(t *rapid.T) {
	ctx := context.Background()
	tables, err := a.d.Proof(ctx, time.Time{}, 1000)
	model, errOfModel := a.model.Proof(ctx, time.Time{}, 1000)
	if err != nil || errOfModel != nil {
		t.Fatal(err, errOfModel)
	}
	a.checkJobs(t)
	a.checkSurplus(t)
	of := func(p ledger.Proof, which int) (told []string) {
		for _, e := range p.Letters {
			told = append(told, fmt.Sprint("letter ", e.ID, e.State, e.Attempts, e.ChangedBy))
		}
		slices.Sort(told)
		lines := map[string]string{}
		for _, l := range p.Lines {
			lines[l.LetterID] += fmt.Sprint(l.Act, l.From, l.To, l.By, l.Attempts, a.jobOf(l.Job, which), "; ")
		}
		for _, e := range p.Letters {
			told = append(told, "audit "+e.ID+lines[e.ID])
		}
		slices.Sort(told)
		for i, s := range p.Sendings {
			told = append(told, fmt.Sprint("sending ", i, s.LetterID, s.Topic, s.Tries, s.Published.Stamp.IsZero(), s.Published.Partition, s.Published.Offset, s.Outcome, s.Code, a.jobOf(s.Job, which)))
		}
		return told
	}
	a.same(t, "proof", of(tables, 0), of(model, 1))
	for _, s := range ledger.States() {
		a.same(t, "count of "+string(s), tables.Rows[s], model.Rows[s])
	}
	a.tables, a.own = tables.Sendings, model.Sendings
	for i := range a.own {
		a.tables[i].Key, a.tables[i].Value = a.own[i].Key, a.own[i].Value
	}
}

// person is one who proposes or approves: all have the one login.
func (a *alike) person(t *rapid.T) ledger.Actor {
	return ledger.Actor{Name: rapid.SampledFrom([]string{"ann", "Ann ", "bob"}).Draw(t, "who"), Why: "because", Vouched: rapid.IntRange(0, 3).Draw(t, "vouched") > 0}
}

// propose wants another value for a letter, where that changes evidence.
func (a *alike) propose(t *rapid.T) {
	ctx, id, by := context.Background(), a.ids(t)[0], a.person(t)
	d := ledger.Draft{LetterID: id, Retry: rapid.Bool().Draw(t, "retry"), Value: []byte(rapid.SampledFrom([]string{"0", "1", "proposed", `{"decision_id":"c","timestamp":"2024-05-01T12:00:00Z"}`}).Draw(t, "value"))}
	tables, second, err := a.d.Touched(ctx, id, d.Value)
	model, secondOfModel, errOfModel := a.model.Touched(ctx, id, d.Value)
	a.sameErr(t, "touched", err, errOfModel)
	a.same(t, "touched", len(tables), len(model))
	a.same(t, "second", second, secondOfModel)
	if err != nil || len(tables) == 0 {
		return
	}
	e, err := a.d.Show(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if d.Before = e.Value; rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		d.Before = []byte("stale")
	}
	p, err := a.d.Propose(ctx, d, by)
	q, errOfModel := a.model.Propose(ctx, d, by)
	a.proposal(t, "propose", p, q, err, errOfModel)
	if err == nil {
		a.wanted = append(a.wanted, [2]int64{p.ID, q.ID})
	}
}

// proposal holds a proposal against the model's.
func (a *alike) proposal(t *rapid.T, what string, tables, model ledger.Proposal, err, errOfModel error) {
	a.sameErr(t, what, err, errOfModel)
	of := func(p ledger.Proposal) string {
		return fmt.Sprint(p.LetterID, p.State, p.Members, p.Retry, string(p.Value), p.By, p.Vouched, p.Decided.By, p.Decided.Why, p.Decided.At.IsZero())
	}
	a.same(t, what, of(tables), of(model))
}

// decideOn draws a proposal.
func (a *alike) decideOn(t *rapid.T, what string, do func(ledger.Proposals, int64, ledger.Actor) (ledger.Proposal, error)) {
	if len(a.wanted) == 0 {
		return
	}
	ids, by := rapid.SampledFrom(a.wanted).Draw(t, "proposal"), a.person(t)
	p, err := do(a.d, ids[0], by)
	q, errOfModel := do(a.model, ids[1], by)
	a.proposal(t, what, p, q, err, errOfModel)
	p, err = a.d.Proposal(context.Background(), ids[0])
	q, errOfModel = a.model.Proposal(context.Background(), ids[1])
	a.proposal(t, "show a proposal", p, q, err, errOfModel)
	asked := ledger.ProposalQuery{All: rapid.Bool().Draw(t, "all")}
	if rapid.Bool().Draw(t, "of its letter") {
		asked.LetterID = p.LetterID
	}
	same := asked
	if rapid.Bool().Draw(t, "a later page") {
		asked.Before, same.Before = ids[0], ids[1]
	}
	list, err := a.d.ListProposals(context.Background(), asked, 2)
	own, errOfModel := a.model.ListProposals(context.Background(), same, 2)
	a.sameErr(t, "list proposals", err, errOfModel)
	a.same(t, "proposals", len(list), len(own))
	for i := range list {
		a.proposal(t, "proposal of a list", list[i], own[i], nil, nil)
	}
}

func (a *alike) approve(t *rapid.T) {
	a.decideOn(t, "approve", func(b ledger.Proposals, id int64, by ledger.Actor) (ledger.Proposal, error) {
		return b.Approve(context.Background(), id, "a diff", soon, by)
	})
}

func (a *alike) reject(t *rapid.T) {
	a.decideOn(t, "reject", func(b ledger.Proposals, id int64, by ledger.Actor) (ledger.Proposal, error) {
		return b.Reject(context.Background(), id, by)
	})
}

// edit gives a letter a value: its own, one of two decisions, or one that a letter had before.
func (a *alike) edit(t *rapid.T) {
	id := a.ids(t)[0]
	value := []byte(rapid.SampledFrom([]string{
		"0", "edited", `[{"decision_id":"c","timestamp":"2024-05-01T12:00:00Z"},{"decision_id":"b","timestamp":"2024-05-01T12:00:00Z"}]`,
	}).Draw(t, "value"))
	lease := rapid.SampledFrom([]time.Duration{0, soon}).Draw(t, "lease")
	a.sameErr(t, "edit", a.d.Edit(context.Background(), id, "", value, "a diff", lease, ann), a.model.Edit(context.Background(), id, "", value, "a diff", lease, ann))
}

// jobOf says which of the jobs an id is; -1: none.
func (a *alike) jobOf(id int64, which int) int {
	return slices.IndexFunc(a.jobs, func(j [2]ledger.Job) bool { return j[which].ID == id })
}

func (a *alike) job(t *rapid.T) {
	j := ledger.Job{
		Act: rapid.SampledFrom([]ledger.Act{ledger.Retried, ledger.Closed}).Draw(t, "act"), Operator: "ann", Reason: "all of them", Limit: rapid.Int64Range(0, 3).Draw(t, "limit"),
		Filter: ledger.Filter{Kind: rapid.SampledFrom([]envelope.Kind{"", envelope.Data}).Draw(t, "kind")},
	}
	if rapid.Bool().Draw(t, "failed alone") {
		j.Filter.States = []ledger.State{ledger.Failed}
	}
	_, err := a.d.CreateJob(context.Background(), j)
	_, errOfModel := a.model.CreateJob(context.Background(), j)
	a.sameErr(t, "create a job", err, errOfModel)
}

// aJob draws a job; nil: there is none, and the action is to do nothing.
func (a *alike) aJob(t *rapid.T) *[2]ledger.Job {
	if len(a.jobs) == 0 {
		return nil
	}
	return &a.jobs[rapid.IntRange(0, len(a.jobs)-1).Draw(t, "job")]
}

// goOn moves a portion of what a job names, whoever has it.
func (a *alike) goOn(t *rapid.T) {
	j, n := a.aJob(t), rapid.IntRange(0, 4).Draw(t, "n")
	if j == nil {
		return
	}
	var moved [2]int
	var errs [2]error
	for i, book := range []ledger.Decider{a.d, a.model} {
		by := ledger.Actor{Name: j[i].Operator, Why: j[i].Reason, Job: j[i].ID}
		if j[i].Act == ledger.Closed {
			moved[i], errs[i] = book.ResolveMatching(context.Background(), j[i].Filter, j[i].CreatedAt, n, by)
			continue
		}
		ids, err := book.RetryMatching(context.Background(), j[i].Filter, j[i].CreatedAt, n, soon, by)
		moved[i], errs[i] = len(ids), err
	}
	a.sameErr(t, "go on with a job", errs[0], errs[1])
	a.same(t, "moved by a job", moved[0], moved[1])
}

func (a *alike) take(t *rapid.T) {
	lease, holder := rapid.SampledFrom([]time.Duration{-time.Second, time.Hour}).Draw(t, "lease"), a.holder(t)
	tables, err := a.d.TakeJob(context.Background(), holder, lease)
	model, errOfModel := a.model.TakeJob(context.Background(), holder, lease)
	a.sameErr(t, "take a job", err, errOfModel)
	a.same(t, "took", a.jobOf(tables.ID, 0), a.jobOf(model.ID, 1))
}

func (a *alike) keep(t *rapid.T) {
	j, holder := a.aJob(t), a.holder(t)
	if j == nil {
		return
	}
	tables, err := a.d.KeepJob(context.Background(), j[0].ID, holder, "on its way", time.Hour)
	model, errOfModel := a.model.KeepJob(context.Background(), j[1].ID, holder, "on its way", time.Hour)
	a.sameErr(t, "keep a job", err, errOfModel)
	a.same(t, "kept", toldOf(tables), toldOf(model))
}

func (a *alike) endJob(t *rapid.T) {
	j, holder, state := a.aJob(t), a.holder(t), rapid.SampledFrom([]ledger.JobState{ledger.JobDone, ledger.JobStopped}).Draw(t, "state")
	if j == nil {
		return
	}
	a.sameErr(t, "end a job", a.d.EndJob(context.Background(), j[0].ID, holder, state, "over"), a.model.EndJob(context.Background(), j[1].ID, holder, state, "over"))
}

// turn stops or resumes a job.
func (a *alike) turn(t *rapid.T) {
	j, by := a.aJob(t), ledger.Actor{Name: "bob", Why: rapid.SampledFrom([]string{"", "so it goes"}).Draw(t, "why")}
	if j == nil {
		return
	}
	var told [2]string
	var errs [2]error
	stop := rapid.Bool().Draw(t, "stop")
	for i, book := range []ledger.Jobs{a.d, a.model} {
		var after ledger.Job
		if stop {
			after, errs[i] = book.StopJob(context.Background(), j[i].ID, "enough", by)
		} else {
			after, errs[i] = book.ResumeJob(context.Background(), j[i].ID, by)
		}
		told[i] = toldOf(after)
	}
	a.sameErr(t, "turn a job", errs[0], errs[1])
	a.same(t, "turned", told[0], told[1])
}

func (a *alike) firstEnds(t *rapid.T) {
	j, n := a.aJob(t), rapid.IntRange(1, 4).Draw(t, "n")
	if j == nil {
		return
	}
	var told [2][]string
	for i, book := range []ledger.Jobs{a.d, a.model} {
		ends, err := book.FirstEnds(context.Background(), j[i].ID, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range ends {
			told[i] = append(told[i], fmt.Sprint(s.Outcome, s.Code))
		}
		if len(ends) < n { // those that ended with one statement have an order of their own
			slices.Sort(told[i])
		}
	}
	a.same(t, "how many ended first", len(told[0]), len(told[1]))
	if len(told[0]) < n {
		a.same(t, "first ends", told[0], told[1])
	}
}

// toldOf is a job without what is each ledger's own.
func toldOf(j ledger.Job) string {
	return fmt.Sprint(j.Act, j.State, j.Operator, j.Reason, j.Limit, j.Matched, j.Sent, j.Stored, j.Dead, j.Refused, j.StartedAt.IsZero(), j.EndedAt.IsZero(), j.Note, j.StoppedBy, j.Owner)
}

// checkJobs compares the jobs of both, and finds out which is which.
func (a *alike) checkJobs(t *rapid.T) {
	tables, err := a.d.ListJobs(context.Background(), 0, 1000)
	model, errOfModel := a.model.ListJobs(context.Background(), 0, 1000)
	a.sameErr(t, "list jobs", err, errOfModel)
	a.same(t, "jobs", len(tables), len(model))
	a.jobs = a.jobs[:0]
	for i := range slices.Backward(tables) {
		a.same(t, "job", toldOf(tables[i]), toldOf(model[i]))
		a.jobs = append(a.jobs, [2]ledger.Job{tables[i], model[i]})
	}
	if len(tables) > 2 { // a page in the middle
		tables, err = a.d.ListJobs(context.Background(), tables[0].ID, len(tables)-2)
		model, errOfModel = a.model.ListJobs(context.Background(), model[0].ID, len(model)-2)
		a.sameErr(t, "list older jobs", err, errOfModel)
		a.same(t, "older jobs", len(tables), len(model))
		for i := range tables {
			a.same(t, "older job", toldOf(tables[i]), toldOf(model[i]))
		}
	}
}
