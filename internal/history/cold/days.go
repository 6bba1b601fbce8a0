package cold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/claims"
	"docket/internal/history/cold/cache"
	"docket/internal/history/reader"
)

// Config says where archived days are, and how they are read.
type Config struct {
	// Where is the place of the archives, for people; empty: there are none, and nothing is read.
	Where string
	// Shelf opens the storage. It is opened once, by the first question. One with a Close is closed by [Days.Close].
	Shelf func() (archive.Shelf, error)
	// Table is the name of the table in archives.
	Table string
	// Left returns the days that archives took out of the table. Those without an archive on the shelf are gaps. nil: they
	// are not known, and an archive that is missing is not noticed.
	Left func(ctx context.Context) ([]archive.Left, error)
	// Letters returns the archives of dead letters that the ledger noted, for an inventory. nil: they are not known.
	Letters func(ctx context.Context) ([]archive.Noted, error)
	// LineBytes limits a row: see [archive.MostLine].
	LineBytes int64
	// Parallel is how many archives are read at once; 0: 4.
	Parallel int
	// Patience limits the reading of archives for one page of a search; 0: 10 s.
	Patience time.Duration
	// Cache keeps files that are asked for often; nil: each question reads the storage.
	Cache *cache.Cache
	// CacheFault says why there is no cache, although one was wanted.
	CacheFault error
	// Once has one of the processes that share Results read an archive that has no index; nil: each reads for itself.
	Once *claims.Once
	// Results is a directory in which processes find what one of them read for all; empty: Once is not asked.
	Results string
	// Format opens an archive; nil: [Formats].
	Format Format
	// Hint returns advice about an error; nil: none.
	Hint func(error) string
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

// Days reads archived days. It is safe for concurrent use. It keeps the storage open and the manifests in memory. Only
// a listing tells which of them count, so a day that was removed is noticed.
type Days struct {
	Config
	ahead     ahead
	manifests archive.Manifests
	letters   archive.Manifests // of dead letters
	listing   *latest[archive.Listing]
	taking    *latest[*inventory.Inventory]
	reading   flights[[]*archive.Manifest] // by day and its manifests
	finding   flights[run]                 // by archive and what is sought

	mu    sync.Mutex
	shelf archive.Shelf // nil: it was not opened yet
}

// New makes Days.
func New(c Config) *Days {
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	if c.Patience <= 0 {
		c.Patience = 10 * time.Second
	}
	if c.Format == nil {
		c.Format = Formats()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Results != "" {
		results{c.Results}.sweep()
	}
	return &Days{Config: c, ahead: ahead{once: c.Once, results: results{c.Results}, where: c.Where}, listing: newLatest[archive.Listing](), taking: newLatest[*inventory.Inventory]()}
}

// Close closes the storage and the ports of claims. A later question opens the storage again.
func (d *Days) Close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.shelf.(interface{ Close() }); ok {
		c.Close()
	}
	d.shelf = nil
	if d.Once != nil {
		d.Once.Close()
	}
}

// None reports whether there is no place of archives.
func (d *Days) None() bool { return d == nil || d.Where == "" }

// name is that of all archived days in a [reader.Gap].
func (d *Days) name() string { return "archived days in " + d.Where }

// told is an error in words, with advice.
func (d *Days) told(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // several errors are one a line
	if d.Hint != nil {
		if hint := d.Hint(err); hint != "" {
			text += "; " + hint
		}
	}
	return text
}

// Open returns the storage, which stays open until [Days.Close]. Its user does not close it.
func (d *Days) Open() (archive.Shelf, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shelf != nil {
		return d.shelf, nil
	}
	shelf, err := d.Shelf()
	if err != nil {
		return nil, err
	}
	d.shelf = shelf
	return shelf, nil
}

// list opens the storage and lists the archived days. Questions at the same time share the listing, so nobody may change it.
func (d *Days) list(ctx context.Context) (archive.Shelf, archive.Listing, error) {
	shelf, err := d.Open()
	if err != nil {
		return nil, archive.Listing{}, err
	}
	if place, ok := shelf.(interface{ Present() error }); ok {
		if err := place.Present(); err != nil {
			return nil, archive.Listing{}, err
		}
	}
	all, err := d.listing.get(ctx, func(ctx context.Context) (archive.Listing, error) { return d.manifests.List(ctx, shelf, d.Table) })
	return shelf, all, err
}

// known is list with the days that left the table and have no archive. These have no manifests. The gaps say why such
// days are not known. The table is asked before the shelf, because a day leaves the table after its archive was written.
func (d *Days) known(ctx context.Context) (shelf archive.Shelf, all []archive.Listed, gaps []reader.Gap, err error) {
	var left []archive.Left
	if d.Left != nil {
		if left, err = d.Left(ctx); err != nil {
			gaps = []reader.Gap{{Name: d.name(), Why: "it is not known whether archives are missing: " + d.unread(ctx, err)}}
		}
	}
	shelf, listing, err := d.list(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	all = slices.Clone(listing.Days)
	for _, day := range left {
		at, there := slices.BinarySearchFunc(all, day, func(one archive.Listed, day archive.Left) int { return one.Compare(day.Time) })
		if !there {
			all = slices.Insert(all, at, archive.Listed{Day: day.Day})
		}
		all[at].Forgotten, all[at].Needs = day.Forgotten, day.Archives
	}
	return shelf, all, gaps, nil
}

// day is one archived day: its archives that no other replaces, the latest first. If two have a decision, the later
// one's counts, as in a restore.
type day struct {
	archive.Day
	archives []part
	gaps     []string // why it cannot be read completely
	// forgotten belongs to the gap errForgotten.
	forgotten *archive.Forgotten
}

// part is an archive of a day.
type part struct {
	Archive
	name string
}

// fast reports whether all of the day's archives are.
func (d *day) fast() bool {
	return !slices.ContainsFunc(d.archives, func(p part) bool { return !p.Fast() })
}

// load reads the manifests of a day.
func (d *Days) load(ctx context.Context, shelf archive.Shelf, of archive.Listed) (day, error) {
	switch {
	case len(of.Manifests) > 0:
	case of.Forgotten != nil && len(of.Needs) == 0:
		return day{Day: of.Day, gaps: []string{errForgotten}, forgotten: of.Forgotten}, nil
	default:
		return day{Day: of.Day, gaps: []string{errAbsent}}, nil
	}
	var broken error
	all, err := d.reading.do(ctx, strings.Join(of.Manifests, " "), func(ctx context.Context) ([]*archive.Manifest, error) { return d.manifests.Read(ctx, shelf, of) })
	if err != nil {
		var damage *archive.BrokenError
		if broken = err; !errors.As(err, &damage) {
			return day{Day: of.Day}, err
		}
	}
	it := day{Day: of.Day}
	if broken != nil {
		it.gaps = append(it.gaps, d.told(broken))
	} else if of.Forgotten != nil && of.Forgotten.Holds(all) {
		it.gaps, it.forgotten = append(it.gaps, errForgotten), of.Forgotten
	}
	left := archive.Left{Day: of.Day, Forgotten: of.Forgotten, Archives: of.Needs}
	if absent := left.Absent(all, archive.BrokenNames(broken)...); absent != nil {
		it.gaps = append(it.gaps, absent.Error())
	}
	superseded := archive.Superseded(all)
	for _, m := range slices.Backward(all) {
		if !superseded[m.Name()] {
			it.archives = append(it.archives, part{d.Format(d.over(shelf, m), m, d.LineBytes), m.Name()})
		}
	}
	return it, nil
}

// Warm fetches files that are asked for often into the cache, and removes old results, until ctx ends. Without a cache and
// results it returns at once.
func (d *Days) Warm(ctx context.Context) error {
	if d == nil {
		return nil
	}
	var work errgroup.Group
	if d.Cache != nil {
		work.Go(func() error { return d.Cache.Run(ctx) })
	}
	if d.Results != "" {
		work.Go(func() error { d.ahead.results.tend(ctx); return nil })
	}
	return work.Wait()
}

// over puts the cache before the storage.
func (d *Days) over(shelf archive.Shelf, m *archive.Manifest) archive.Shelf {
	if d.Cache == nil {
		return shelf
	}
	return d.Cache.Over(shelf, m)
}

// loadAll reads the manifests of days, several at once. A day that could not be read is among them, with its gap.
func (d *Days) loadAll(ctx context.Context, shelf archive.Shelf, of []archive.Listed) []day {
	all := make([]day, len(of))
	var work errgroup.Group
	work.SetLimit(2 * d.Parallel)
	for i, one := range of {
		work.Go(func() error {
			var err error
			if all[i], err = d.load(ctx, shelf, one); err != nil {
				all[i].gaps = append(all[i].gaps, d.unread(ctx, err))
			}
			return nil
		})
	}
	_ = work.Wait() // the gaps have the errors
	return all
}

// These mark a day that was not read.
const (
	errLate      = "it was not read within the time"
	errAbsent    = "no archive has it"
	errForgotten = "it was forgotten on purpose"
	errMany      = "of an id only the first 1000 decisions of a file were read"
)

// unread says why a day was not read completely.
func (d *Days) unread(ctx context.Context, err error) string {
	if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return errLate
	}
	return d.told(err)
}

// Found is the result of [Days.Find].
type Found struct {
	Decisions []reader.Decision // oldest first, with their payload; each identity once
	Days      int               // that were read completely
	Gaps      []reader.Gap
	// Forgotten says when those sought days were given up on purpose that lack nothing else. [Days.Having] sets it.
	Forgotten map[archive.Day]time.Time
}

// Find looks for decisions by their ids in all archived days until ctx ends. Archives with an index come first, then
// the newest.
func (d *Days) Find(ctx context.Context, ids []string) Found {
	shelf, of, unknown, err := d.known(ctx)
	if err != nil {
		return Found{Gaps: []reader.Gap{{Name: d.name(), Why: d.unread(ctx, err)}}}
	}
	slices.Reverse(of)
	days := d.loadAll(ctx, shelf, of)
	answers := make([][][]reader.Decision, len(days)) // by day and archive
	var work errgroup.Group
	work.SetLimit(d.Parallel)
	for _, fast := range []bool{true, false} {
		for i := range days {
			if days[i].fast() != fast || len(days[i].gaps) > 0 && len(days[i].archives) == 0 {
				continue
			}
			work.Go(func() error {
				answers[i] = d.findIn(ctx, &days[i], ofIDs(ids))
				return nil
			})
		}
	}
	_ = work.Wait() // the gaps have the errors
	var found Found
	for i := range days {
		seen := map[reader.Spot]bool{}
		for _, of := range answers[i] {
			for _, one := range of {
				if at := reader.SpotOf(one); !seen[at] {
					seen[at] = true
					found.Decisions = append(found.Decisions, one)
				}
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

// findIn looks for decisions in the archives of a day. Questions for the same ones share the reading of an archive.
func (d *Days) findIn(ctx context.Context, it *day, of Sought) [][]reader.Decision {
	var all [][]reader.Decision
	key := of.key()
	for _, p := range it.archives {
		r, err := d.finding.do(ctx, p.name+"\n"+key, func(ctx context.Context) (run, error) { return d.ahead.find(ctx, p, of) })
		switch {
		case err != nil:
			it.gaps = append(it.gaps, d.unread(ctx, err))
		case r.more:
			it.gaps = append(it.gaps, errMany)
		}
		all = append(all, r.found)
	}
	return all
}

// gaps names the days that were not read completely. Those for which there was no time are named together, those whose
// archives are missing, and those that were forgotten.
func (d *Days) gaps(days []day) []reader.Gap {
	var gaps []reader.Gap
	var late, absent, forgotten []archive.Day
	var note string // of the only one
	for i := range days {
		for _, why := range slices.Compact(days[i].gaps) {
			switch why {
			case errLate:
				late = append(late, days[i].Day)
			case errAbsent:
				absent = append(absent, days[i].Day)
			case errForgotten:
				forgotten, note = append(forgotten, days[i].Day), days[i].forgotten.String()
			default:
				gaps = append(gaps, reader.Gap{Name: "archived day " + days[i].String() + " in " + d.Where, Why: why})
			}
		}
	}
	gaps = append(gaps, d.together(late, "%s was not read within the time: ask for longer, or docket restore --day %[1]s",
		"%d days from %s to %s were not read within the time: ask for longer, or docket archive list, docket restore --day DAY")...)
	gaps = append(gaps, d.together(absent, "%s left the table, and no archive has it: it was removed, or is elsewhere",
		"%d days from %s to %s left the table, and no archives have them: these were removed, or are elsewhere")...)
	for _, g := range d.together(forgotten, "%s was "+strings.ReplaceAll(note, "%", "%%"),
		"%d days from %s to %s were forgotten on purpose: docket archive days says by whom, and why") {
		g.Forgotten = true
		gaps = append(gaps, g)
	}
	return gaps
}

// together is one gap for all of some days, in the words for one or for several.
func (d *Days) together(of []archive.Day, one, several string) []reader.Gap {
	switch n := len(of); n {
	case 0:
		return nil
	case 1:
		return []reader.Gap{{Name: d.name(), Why: fmt.Sprintf(one, of[0])}}
	default:
		slices.SortFunc(of, func(a, b archive.Day) int { return a.Compare(b.Time) })
		return []reader.Gap{{Name: d.name(), Why: fmt.Sprintf(several, n, of[0], of[n-1])}}
	}
}
