package cold

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
)

// mostHaving limits the identities that one archive is asked for at once.
const mostHaving = 500

// Having looks for decisions by their identities, in the days of their times alone. The result has no other decisions, and each
// identity once: that of the latest archive.
func (d *Days) Having(ctx context.Context, of []reader.Spot) Found { return d.copies(ctx, of, false) }

// copies is Having. With every archive, it returns what each of them has of an identity.
func (d *Days) copies(ctx context.Context, of []reader.Spot, every bool) Found {
	if len(of) == 0 {
		return Found{}
	}
	shelf, there, unknown, err := d.known(ctx)
	if err != nil {
		return Found{Gaps: []reader.Gap{{Name: d.name(), Why: d.unread(ctx, err)}}}
	}
	sought := map[archive.Day]Sought{}
	want := map[reader.Spot]bool{}
	for _, at := range of {
		want[reader.Spot{Time: at.Time.UTC(), ID: at.ID}] = true
		day := archive.DayOf(at.Time)
		sought[day] = append(sought[day], at)
	}
	there = slices.DeleteFunc(slices.Clone(there), func(one archive.Listed) bool { return len(sought[one.Day]) == 0 })
	days := d.loadAll(ctx, shelf, there)
	answers := make([][]reader.Decision, len(days))
	var work errgroup.Group
	work.SetLimit(d.Parallel)
	for i := range days {
		work.Go(func() error {
			for some := range slices.Chunk(sought[days[i].Day], mostHaving) {
				for _, found := range d.findIn(ctx, &days[i], some) { // the latest archive first
					answers[i] = append(answers[i], found...)
				}
			}
			return nil
		})
	}
	_ = work.Wait() // the gaps have the errors
	found := Found{Forgotten: map[archive.Day]time.Time{}}
	for i := range days {
		if slices.Equal(days[i].gaps, []string{errForgotten}) {
			found.Forgotten[days[i].Day] = days[i].forgotten.At
		}
		for _, one := range answers[i] {
			if at := reader.SpotOf(one); want[at] {
				if !every {
					delete(want, at)
				}
				found.Decisions = append(found.Decisions, one)
			}
		}
		if len(days[i].gaps) == 0 {
			found.Days++
		}
	}
	inOrder(found.Decisions, true)
	found.Gaps = append(unknown, d.gaps(days)...)
	return found
}
