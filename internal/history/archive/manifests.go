package archive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Listed is a day with the names of its manifests, in order.
type Listed struct {
	Day
	Manifests []string
	Forgotten *Forgotten // nil: the day was not given up
	Needs     []string   // the names of archives that are noted of the day
}

// Listing is what one listing of the manifests of a table tells.
type Listing struct {
	// Days are the days with whole archives, in order.
	Days []Listed
	// Unfinished are the names of archives with a marker and without a manifest, in order. A run is writing them, or was
	// killed. Their days need not be among Days.
	Unfinished map[Day][]string
}

// ListDays lists the days with whole archives of a table, in order. It is one listing, and reads no manifest.
func ListDays(ctx context.Context, shelf Shelf, table string) ([]Listed, error) {
	l, err := listed(ctx, shelf, table, nil)
	return l.Days, err
}

// listed lists the manifests by day; day nil: of all days. A name whose date is not one is left out.
func listed(ctx context.Context, shelf Shelf, table string, day *Day) (Listing, error) {
	names, err := shelf.List(ctx, prefix(table, day))
	if err != nil {
		return Listing{}, err
	}
	return Listing{Days: whole(names, table), Unfinished: marked(names, table)}, nil
}

// whole returns the days of manifests. The names are in order.
func whole(names []string, table string) (days []Listed) {
	for _, name := range names {
		of := nameForm.FindStringSubmatch(name)
		if of == nil || of[1] != table || of[5] != manifestSuffix {
			continue
		}
		at, err := ParseDay(of[2])
		if err != nil {
			continue
		}
		if n := len(days); n == 0 || days[n-1].Day != at {
			days = append(days, Listed{Day: at})
		}
		last := &days[len(days)-1]
		last.Manifests = append(last.Manifests, name)
	}
	return days
}

// mostManifests limits what [Manifests] keeps, in bytes of JSON. More is read each time.
const mostManifests = 64 << 20

// Manifests keeps the manifests of one table on one shelf in memory. A manifest has a name of its own and is written
// once, so a kept one stays true. A removed one is missing in the next listing. The zero value is ready; it is safe for
// concurrent use.
type Manifests struct {
	mu    sync.Mutex
	known map[string]kept
	bytes int64
}

type kept struct {
	manifest *Manifest
	bytes    int64
}

// List lists the manifests of all days. It is one listing. It forgets the manifests that are not listed any more.
func (k *Manifests) List(ctx context.Context, shelf Shelf, table string) (Listing, error) {
	l, err := listed(ctx, shelf, table, nil)
	if err != nil {
		return Listing{}, err
	}
	there := map[string]bool{}
	for _, one := range l.Days {
		for _, name := range one.Manifests {
			there[name] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, one := range k.known {
		if !there[name] {
			delete(k.known, name)
			k.bytes -= one.bytes
		}
	}
	return l, nil
}

// Read returns the manifests of a day, by generation. It reads those that are not in memory, and returns an unreadable
// one as a [*BrokenError] besides the others. Nobody may change a manifest.
func (k *Manifests) Read(ctx context.Context, shelf Shelf, of Listed) ([]*Manifest, error) {
	all := make([]*Manifest, len(of.Manifests))
	broken := make([]error, len(of.Manifests))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(4)
	for i, name := range of.Manifests {
		if all[i] = k.get(name); all[i] != nil {
			continue
		}
		work.Go(func() error {
			m, size, err := readManifest(ctx, shelf, name)
			if isBroken(err) {
				broken[i] = err
				return nil
			}
			if err != nil {
				return err
			}
			k.put(name, m, size)
			all[i] = m
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m *Manifest) bool { return m == nil })
	slices.SortFunc(all, inOrder)
	return all, errors.Join(broken...)
}

// inOrder is the order of manifests: by day, generation and source.
func inOrder(a, b *Manifest) int {
	if a.Day != b.Day {
		return strings.Compare(a.Day, b.Day)
	}
	if a.Generation != b.Generation {
		return a.Generation - b.Generation
	}
	return strings.Compare(a.Source.ID, b.Source.ID)
}

func (k *Manifests) get(name string) *Manifest {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[name].manifest
}

func (k *Manifests) put(name string, m *Manifest, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]kept{}
	}
	if k.known[name].manifest != nil || k.bytes+size > mostManifests {
		return
	}
	k.known[name] = kept{m, size}
	k.bytes += size
}
