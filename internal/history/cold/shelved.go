package cold

import (
	"context"
	"errors"
	"maps"
	"slices"

	"docket/internal/history/archive"
)

// Shelved returns the archived days with their manifests, the newest most days, in order. more says that there are
// others. A manifest that cannot be read is a gap of its day. Each day of an archive that is not finished is there, too.
func (d *Days) Shelved(ctx context.Context, most int) (days []archive.Shelved, more bool, err error) {
	if d.None() {
		return nil, false, nil
	}
	shelf, listing, err := d.list(ctx)
	if err != nil {
		return nil, false, err
	}
	all := listing.Days
	if more = len(all) > most; more {
		all = all[len(all)-most:]
	}
	unfinished := maps.Clone(listing.Unfinished)
	for _, of := range all {
		manifests, err := d.manifests.Read(ctx, shelf, of)
		one := archive.Shelved{Day: of.Day, Unfinished: unfinished[of.Day]}
		delete(unfinished, of.Day)
		if broken := (*archive.BrokenError)(nil); err != nil && !errors.As(err, &broken) {
			return nil, false, err
		}
		if err != nil {
			one.Gaps = append(one.Gaps, d.told(err))
		}
		superseded := archive.Superseded(manifests)
		for _, m := range manifests {
			if !superseded[m.Name()] {
				one.Archives = append(one.Archives, m)
			}
		}
		days = append(days, one)
	}
	for day, names := range unfinished { // of days without a whole archive, or of earlier ones
		days = append(days, archive.Shelved{Day: day, Unfinished: names})
	}
	slices.SortFunc(days, func(a, b archive.Shelved) int { return a.Day.Compare(b.Day.Time) })
	return days, more, nil
}

// Told is an error of the storage in words, with advice.
func (d *Days) Told(err error) string { return d.told(err) }
