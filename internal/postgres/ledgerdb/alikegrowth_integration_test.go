//go:build integration

package ledgerdb_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
)

// pass begins another hour for both.
func (a *alike) pass(t *rapid.T) {
	a.hour = a.hour.Add(time.Hour)
	if _, err := a.conn.Exec(context.Background(), hourSQL(a.hour)); err != nil {
		t.Fatal(err)
	}
}

// hourSQL has growth count to that hour.
func hourSQL(hour time.Time) string {
	return `CREATE OR REPLACE FUNCTION dead_letters_hour() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT timestamptz '` + hour.Format(time.RFC3339) + `' $$`
}

// ranges are those of both, in the order in which they were made.
func (a *alike) ranges(t *rapid.T) (tables, model []ledger.Surplus) {
	tables, err := a.d.Surplus(context.Background(), true, 0, 1000)
	model, errOfModel := a.model.Surplus(context.Background(), true, 0, 1000)
	if err != nil || errOfModel != nil {
		t.Fatal(err, errOfModel)
	}
	slices.Reverse(tables)
	slices.Reverse(model)
	return tables, model
}

func (a *alike) checkSurplus(t *rapid.T) {
	tables, model := a.ranges(t)
	of := func(ranges []ledger.Surplus) (told []string) {
		for _, s := range ranges {
			told = append(told, fmt.Sprintf("%s/%d/%d-%d of %q in %v, %v to %v, from %d: %d letters, %d %d %d, %s, closed %v, %d in %q, ordered by %q: %s, %d in this hour", s.Topic, s.Partition, s.First, s.Last, s.Client,
				s.Hour.UTC(), s.FirstAt.UTC(), s.LastAt.UTC(), s.Next, s.Letters, s.Entered, s.Archived, s.Lost, s.State, !s.ClosedAt.IsZero(), s.ArchivedFrom, s.ArchivedIn, s.OrderedBy, s.OrderedWhy, s.Growth))
		}
		slices.Sort(told) // of one batch they have no order
		return told
	}
	a.same(t, "ranges", of(tables), of(model))
	sums, err := a.d.SurplusSums(context.Background())
	sumsOfModel, errOfModel := a.model.SurplusSums(context.Background())
	a.sameErr(t, "sums", err, errOfModel)
	for _, s := range ledger.SurplusStates() {
		a.same(t, "sum of "+string(s), sums.Letters[s], sumsOfModel.Letters[s])
	}
	a.same(t, "oldest", sums.Oldest.IsZero(), sumsOfModel.Oldest.IsZero())
}

// aRange draws a range of both; its ids differ.
func (a *alike) aRange(t *rapid.T) (both [2]ledger.Surplus, ok bool) {
	tables, model := a.ranges(t)
	if len(model) == 0 {
		return both, false
	}
	both[1] = model[rapid.IntRange(0, len(model)-1).Draw(t, "range")]
	at := slices.IndexFunc(tables, func(s ledger.Surplus) bool {
		return s.Client == both[1].Client && s.Hour.Equal(both[1].Hour) && s.State == both[1].State && s.Letters == both[1].Letters && s.Next == both[1].Next && s.First == both[1].First
	})
	if at < 0 {
		t.Fatalf("%+v is not among %+v", both[1], tables)
	}
	both[0] = tables[at]
	return both, true
}

// late reads a portion of a range again: all that was ever left, or some of it.
func (a *alike) late(t *rapid.T) {
	both, ok := a.aRange(t)
	if !ok {
		return
	}
	from, anyway := both[1].Next, rapid.Bool().Draw(t, "anyway")
	if rapid.IntRange(0, 9).Draw(t, "somebody was faster") == 0 {
		from++
	}
	to := rapid.Int64Range(both[1].Next, both[1].Last+1).Draw(t, "to")
	var letters [2][]ledger.Letter
	pairs := append([][2]ledger.Letter{}, a.deaths...)
	for _, l := range a.pool() {
		pairs = append(pairs, [2]ledger.Letter{l, l})
	}
	gone := rapid.IntRange(0, 9).Draw(t, "some are gone") == 0
	for _, pair := range pairs {
		if at := pair[1].Found.Offset; pair[1].ClaimedBy(both[1].Client) && at >= from && at < to && !(gone && at%2 == 0) {
			letters[0], letters[1] = append(letters[0], pair[0]), append(letters[1], pair[1])
		}
	}
	n, next, err := a.d.EnterSurplus(context.Background(), ledger.Portion{ID: both[0].ID, From: from, To: to, Letters: letters[0], Anyway: anyway}, atMost, ann)
	m, nextOfModel, errOfModel := a.model.EnterSurplus(context.Background(), ledger.Portion{ID: both[1].ID, From: from, To: to, Letters: letters[1], Anyway: anyway}, atMost, ann)
	a.sameErr(t, "enter what was left", err, errOfModel)
	n.Groups = nil
	a.same(t, "entered late", n, m)
	a.same(t, "next", next, nextOfModel)
}

func (a *alike) shelve(t *rapid.T) {
	both, ok := a.aRange(t)
	if !ok {
		return
	}
	from, name, letters := both[1].Next+int64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "from")), rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "archive"), rapid.Int64Range(0, 3).Draw(t, "letters")
	lost, err := a.d.ArchivedSurplus(context.Background(), both[0].ID, from, both[0].Last, name, letters)
	lostOfModel, errOfModel := a.model.ArchivedSurplus(context.Background(), both[1].ID, from, both[1].Last, name, letters)
	a.sameErr(t, "archived", err, errOfModel)
	a.same(t, "lost", lost, lostOfModel)
}

func (a *alike) order(t *rapid.T) {
	if both, ok := a.aRange(t); ok {
		a.sameErr(t, "order", a.d.OrderSurplus(context.Background(), both[0].ID, ann), a.model.OrderSurplus(context.Background(), both[1].ID, ann))
	}
}
