package cold

import (
	"context"
	"errors"

	"docket/internal/history/archive"
)

// Shelved returns the archived days with their manifests, the newest most days, in order. more says that there are
// others. A manifest that cannot be read is a gap of its day.
func (d *Days) Shelved(ctx context.Context, most int) (days []archive.Shelved, more bool, err error) {
	if d.None() {
		return nil, false, nil
	}
	shelf, all, err := d.list(ctx)
	if err != nil {
		return nil, false, err
	}
	if more = len(all) > most; more {
		all = all[len(all)-most:]
	}
	for _, of := range all {
		manifests, err := d.manifests.Read(ctx, shelf, of)
		one := archive.Shelved{Day: of.Day}
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
	return days, more, nil
}

// Told is an error of the storage in words, with advice.
func (d *Days) Told(err error) string { return d.told(err) }
