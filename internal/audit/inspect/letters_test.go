package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/record/home"
)

// books is a ledger with letters by id and with ranges. Its errors are those of every question for a letter, and for the ranges.
type books struct {
	letters        map[string]ledger.Entry
	ranges         []ledger.Surplus
	noShow, noLeft error
}

func (b *books) Show(_ context.Context, id string) (ledger.Entry, error) {
	if b.noShow != nil {
		return ledger.Entry{}, b.noShow
	}
	e, there := b.letters[id]
	if !there {
		return ledger.Entry{}, ledger.ErrNotFound
	}
	return e, nil
}

func (b *books) Surplus(_ context.Context, _ bool, _ int64, n int) ([]ledger.Surplus, error) {
	if b.noLeft != nil {
		return nil, b.noLeft
	}
	return b.ranges[:min(n, len(b.ranges))], nil
}

// TestLetters_SaysWhatWasNotRead: a dead letter that was found nowhere may be in a part of the ledger that was not read. The answer says
// which part that is, and tells nobody to produce the record again.
func TestLetters_SaysWhatWasNotRead(t *testing.T) {
	t.Parallel()
	const letters, left = "the ledger of dead letters: ", "dead letters that a desk left in Kafka: "
	refused, away := errors.New("permission denied"), errors.New("away")
	other := ledger.Surplus{Topic: "dlq", Client: "c", Last: 3, State: ledger.SurplusOpen}
	own := ledger.Surplus{Topic: "dlq", Client: "c", Next: 5, Last: 9, State: ledger.SurplusOpen}
	many := slices.Repeat([]ledger.Surplus{other}, mostRanges+1)
	for name, c := range map[string]struct {
		book         books
		letter, left bool
		says         string
	}{
		"in the ledger":               {books{letters: map[string]ledger.Entry{"e": {State: ledger.Pending}}, ranges: many}, true, false, ""},
		"nowhere":                     {books{ranges: many[:mostRanges]}, false, false, ""},
		"in a range":                  {books{ranges: []ledger.Surplus{other, own}}, false, true, ""},
		"behind the ranges":           {books{ranges: many}, false, false, fmt.Sprintf("%sonly the newest %d ranges were read, and there are more", left, mostRanges)},
		"ranges cannot be read":       {books{noLeft: refused}, false, false, left + "permission denied"},
		"the ledger cannot be read":   {books{noShow: away, ranges: []ledger.Surplus{other}}, false, false, letters + "away"},
		"in a range, and no ledger":   {books{noShow: away, ranges: []ledger.Surplus{own}}, false, true, ""},
		"in the ledger, and no range": {books{letters: map[string]ledger.Entry{"e": {State: ledger.Pending}}, noLeft: refused}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := verify.Forwarded{Home: home.DeadLetter, Found: "dlq", At: verify.Position{Offset: 7}, Client: "c", Entry: "e"}
			w := &Whereabouts{Records: []Record{{Decisions: []Decision{{Forwarded: []Forwarded{{Forwarded: f}, {Forwarded: f}}}}}}}
			w.letters(t.Context(), &c.book)
			for _, got := range w.Records[0].Decisions[0].Forwarded {
				if (got.Letter != nil) != c.letter || (got.Left != nil) != c.left || got.Unasked != (c.says != "") {
					t.Errorf("letter %v, left %v, unasked %v", got.Letter, got.Left, got.Unasked)
				}
			}
			if said := strings.Join(w.Unlooked, "\n"); said != c.says {
				t.Errorf("not searched: %q, want %q", said, c.says)
			}
		})
	}
	// Nothing is asked where no dead letter was found.
	none := &Whereabouts{Records: []Record{{Decisions: []Decision{{Forwarded: []Forwarded{{Forwarded: verify.Forwarded{Home: home.Parked}}}}}}}}
	if none.letters(t.Context(), &books{noShow: away, noLeft: away}); len(none.Unlooked) > 0 {
		t.Errorf("not searched: %q", none.Unlooked)
	}
}
