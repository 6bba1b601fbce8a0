package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

func groupsAlike(n int) (all []ledger.Group) {
	r := rand.New(rand.NewPCG(3, 5))
	for i := range n {
		g := ledger.Group{Fingerprint: fmt.Sprintf("%016x", i), Counts: map[ledger.State]int64{ledger.Pending: r.Int64N(3), ledger.Resolved: 9}}
		if r.IntN(4) > 0 {
			g.Newest = time.Date(2026, 3, 1, 12, 0, r.IntN(3), 0, time.UTC)
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b ledger.Group) int { return a.Place().Compare(b.Place()) })
	return all
}

// TestPageOfGroups_EachOnce: pages of any size have each group once and in order, also groups that are alike in number
// and time.
func TestPageOfGroups_EachOnce(t *testing.T) {
	t.Parallel()
	all := groupsAlike(60)
	for _, limit := range []int{1, 7, 59, 60, 61, 0} {
		var seen []string
		for after, pages := "", 0; ; pages++ {
			page, next, err := ledger.PageOfGroups(all, ledger.Group.Place, after, limit)
			if err != nil || limit > 0 && len(page) > limit || pages > 60 {
				t.Fatalf("limit %d: %d groups, %v", limit, len(page), err)
			}
			for _, g := range page {
				seen = append(seen, g.Fingerprint)
			}
			if after = next; after == "" {
				break
			}
		}
		if want := fingerprints(all); !slices.Equal(seen, want) {
			t.Errorf("limit %d: %v, want %v", limit, seen, want)
		}
	}
}

// TestPageOfGroups_NewOnesMoveNothing: a group that comes in above a page is on none of the later ones.
func TestPageOfGroups_NewOnesMoveNothing(t *testing.T) {
	t.Parallel()
	all := groupsAlike(20)
	_, next, err := ledger.PageOfGroups(all, ledger.Group.Place, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	more := append([]ledger.Group{{Fingerprint: "ffffffffffffffff", Counts: map[ledger.State]int64{ledger.Pending: 1000}}}, all...)
	if page, _, err := ledger.PageOfGroups(more, ledger.Group.Place, next, 10); err != nil || !slices.Equal(fingerprints(page), fingerprints(all[10:])) {
		t.Errorf("%v, %v", fingerprints(page), err)
	}
}

func fingerprints(all []ledger.Group) (out []string) {
	for _, g := range all {
		out = append(out, g.Fingerprint)
	}
	return out
}

func TestPages_ForeignCursorsAreRefused(t *testing.T) {
	t.Parallel()
	good := groupsAlike(1)[0].Place().String()
	for _, cursor := range []string{"x", "0", good + "A", good[1:], "MSAyIDM", "IQ=="} {
		if _, _, err := ledger.PageOfGroups(groupsAlike(3), ledger.Group.Place, cursor, 1); !errors.Is(err, ledger.ErrBadPage) {
			t.Errorf("groups after %q: %v", cursor, err)
		}
	}
	for _, cursor := range []string{"x", "0", "-1", "+1", "01", "1.5", " 1", "9223372036854775808"} {
		if _, err := ledger.NumberAfter(cursor); !errors.Is(err, ledger.ErrBadPage) {
			t.Errorf("numbers after %q: %v", cursor, err)
		}
	}
	if n, err := ledger.NumberAfter("9223372036854775807"); n != 1<<63-1 || err != nil {
		t.Error(n, err)
	}
}

func TestNextNumber_OnlyWhereThereAreMore(t *testing.T) {
	t.Parallel()
	number := func(n int64) int64 { return n }
	if page, next := ledger.NextNumber([]int64{9, 7, 5}, 2, number); len(page) != 2 || next != "7" {
		t.Error(page, next)
	}
	if page, next := ledger.NextNumber([]int64{9, 7}, 2, number); len(page) != 2 || next != "" {
		t.Error(page, next)
	}
}
