package cold

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
)

// manifestDays is how many days have their manifests read at once.
const manifestDays = 8

// Inventory takes an inventory of the archives. Questions at the same time share one, and its manifests stay in memory. So
// nobody may change it. Nothing but the database and Wanted is used of the source.
func (d *Days) Inventory(ctx context.Context, of inventory.Source) (*inventory.Inventory, error) {
	return d.taking.get(ctx, func(ctx context.Context) (*inventory.Inventory, error) {
		shelf, err := d.Open()
		if err != nil {
			return nil, err
		}
		of.Shelf, of.Left, of.Letters, of.Told = shelf, d.Left, d.Letters, d.told
		of.Whole = func(ctx context.Context, table string) ([]*archive.Manifest, error) {
			return d.whole(ctx, shelf, table)
		}
		return of.Take(ctx)
	})
}

// whole is [archive.Whole] with the manifests that are in memory.
func (d *Days) whole(ctx context.Context, shelf archive.Shelf, table string) ([]*archive.Manifest, error) {
	kept := &d.manifests
	if table != d.Table {
		kept = &d.letters
	}
	listing, err := kept.List(ctx, shelf, table)
	if err != nil {
		return nil, err
	}
	days := listing.Days
	some, broken := make([][]*archive.Manifest, len(days)), make([]error, len(days))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(manifestDays)
	for i, day := range days {
		work.Go(func() error {
			var err error
			some[i], err = kept.Read(ctx, shelf, day)
			if wrong := (*archive.BrokenError)(nil); err == nil || !errors.As(err, &wrong) {
				return err
			}
			broken[i] = err
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	var all []*archive.Manifest
	for _, one := range some {
		all = append(all, one...)
	}
	return all, errors.Join(broken...)
}

// Prove reads all of an archive and compares it with its manifest: see [archive.ProveWithin]. The error is [archive.ErrNone] if
// no archive has that name.
func (d *Days) Prove(ctx context.Context, name string) error {
	shelf, err := d.Open()
	if err != nil {
		return err
	}
	day, ok := archive.DayOfName(name)
	if !ok {
		return archive.ErrNone
	}
	var once archive.Manifests // not those in memory: this one is read again, too
	all, err := once.Read(ctx, shelf, archive.Listed{Day: day, Manifests: []string{name + ".manifest.json"}})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return archive.ErrNone
	case err != nil:
		return err
	}
	return archive.ProveWithin(ctx, shelf, all[0], d.LineBytes)
}
