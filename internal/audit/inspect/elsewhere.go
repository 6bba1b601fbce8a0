package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"docket/internal/audit/verify"
	"docket/internal/history/archive"
	"docket/internal/history/claims"
	"docket/internal/history/cold"
	"docket/internal/history/cold/cache"
	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Sight has the places of a lookup besides Kafka and the database.
type Sight struct {
	// Spools are the spool directories; if empty, those of the settings.
	Spools []string
	// Shelf opens the storage of archives; nil: they are not searched.
	Shelf func(where string) (archive.Shelf, error)
	// Days reads archived days; nil: those of the settings, if Shelf is there.
	Days   *cold.Days
	Limits lookup.Limits
	// Topics is open for all lookups; nil: each connects to Kafka.
	Topics lookup.Topics
	// Quiet is that of [lookup.Look].
	Quiet func() lookup.Quiet
}

func (sight Sight) days(s config.Settings, db *store.Store) *cold.Days {
	if sight.Days != nil || sight.Shelf == nil {
		return sight.Days
	}
	return ArchivedDays(s, db, sight.Shelf)
}

// ArchivedDays reads the archived days of the settings. Without DOCKET_ARCHIVE_TO it reads nothing.
func ArchivedDays(s config.Settings, db *store.Store, open func(where string) (archive.Shelf, error)) *cold.Days {
	var fault error
	if s.CacheDir != "" && s.ArchiveTo != "" {
		if fault = cache.Prepare(s.CacheDir); fault != nil {
			s.CacheDir = "" // neither files nor results
		}
	}
	shared := once(s, db)
	kept, failed := cached(s, shared)
	fault = cmp.Or(fault, failed)
	return cold.New(cold.Config{
		Cache: kept, CacheFault: fault,
		Where: s.ArchiveTo, Shelf: func() (archive.Shelf, error) { return open(s.ArchiveTo) }, Table: historydb.NewArchives(db.DB).Name(),
		LineBytes: archive.MostLine(int64(s.MaxRecordBytes)), Hint: hint, Left: historydb.NewReader(db.DB).Left, Letters: historydb.NewReader(db.DB).LettersNoted,
		Once: shared, Results: results(s),
	})
}

// cached opens the cache of archived files. A directory needs none: it is as near as the cache.
func cached(s config.Settings, shared *claims.Once) (*cache.Cache, error) {
	if s.CacheDir == "" || !strings.HasPrefix(s.ArchiveTo, "s3://") {
		return nil, nil //nolint:nilnil // there is none
	}
	return cache.Open(cache.Config{Dir: s.CacheDir, Bytes: int64(s.CacheBytes), Claim: fetching(s, shared)})
}

// Looking makes a lookup by id.
func Looking(s config.Settings, st *store.Store, sight Sight) *lookup.Look {
	spools := sight.Spools
	if len(spools) == 0 {
		spools = lookup.Spools(s.SpoolDir)
	}
	return &lookup.Look{
		Settings: s, Rows: historydb.NewReader(st.DB).ByID, Book: ledgerdb.New(st.DB), Standby: db.WatchStandby, Spools: spools, Shelf: sight.Shelf, Archived: historydb.NewReader(st.DB).MayBeArchived, Noted: historydb.NewReader(st.DB).LettersNoted, Days: sight.days(s, st), Limits: sight.Limits, Hint: hint, Quiet: sight.Quiet,
		Topics: func() (lookup.Topics, func(), error) {
			if sight.Topics != nil {
				return sight.Topics, func() {}, nil
			}
			brokers, err := app.Kafka(s, "lookup")
			if err != nil {
				return nil, nil, err
			}
			r, err := kafka.NewReader(brokers)
			if err != nil {
				return nil, nil, err
			}
			return r, r.Close, nil
		},
	}
}

// hint returns advice about an error; Kafka's errors have their own.
func hint(err error) string {
	var of *kafka.FaultError
	var shelf *archive.ShelfError
	switch {
	case errors.As(err, &of):
		return ""
	case errors.As(err, &shelf):
		return shelf.Hint()
	}
	return db.Hint(err)
}

// everywhere searches every home for an id, and adds the source records that it finds.
func (s *System) everywhere(ctx context.Context, w *Whereabouts, id string) ([]verify.Place, []verify.Row, error) {
	a, err := s.elsewhere(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	before := a
	w.by = &before
	w.looked(&a)
	var places []verify.Place
	add := func(topic string, partition int32, offset int64) {
		at := verify.Place{Topic: topic, Partition: partition, Offset: offset}
		if partition >= 0 && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	var rows []verify.Row
	for _, d := range a.Rows {
		rows = append(rows, verify.Row{Place: verify.Place{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: d.Index}, ID: d.ID, Time: d.Time, StoredAt: d.StoredAt})
		add(d.Topic, d.Partition, d.Offset)
	}
	a.Shown() // none is shown as a decision here
	for _, e := range a.Letters {
		if e.Origin.Partition < 0 || e.Cause.Kind == envelope.Foreign { // the place of a foreign letter is its own
			w.Refused = append(w.Refused, e)
			continue
		}
		add(e.Origin.Topic, e.Origin.Partition, e.Origin.Offset)
	}
	for _, f := range a.Found {
		w.Found = append(w.Found, f)
		if _, ours := s.settings.Source(f.Origin.Topic); ours && !f.Unproven {
			add(f.Origin.Topic, f.Origin.Partition, f.Origin.Offset)
		}
	}
	return places, rows, nil
}

// settle drops found records that a source record covers, and source records of which only these are left. An id that was found,
// maybe in its topic, is whole.
func (w *Whereabouts) settle() {
	if w.Has() {
		w.Whole = nil
	}
	w.Found = slices.DeleteFunc(w.Found, func(f lookup.Found) bool {
		return slices.ContainsFunc(w.Records, func(r Record) bool { return r.tells(f) })
	})
	if len(w.Found) > 0 {
		w.Records = slices.DeleteFunc(w.Records, func(r Record) bool { return r.Gone && len(r.Decisions) == 0 })
	}
}

// Tells reports whether a decision of a source record is told with what was found.
func (w *Whereabouts) Tells(f *lookup.Found) bool {
	return slices.ContainsFunc(w.Records, func(r Record) bool {
		return slices.ContainsFunc(r.Decisions, func(d Decision) bool {
			return slices.ContainsFunc(d.Elsewhere, func(g lookup.Found) bool { return g.Where == f.Where && g.Name == f.Name && g.Origin == f.Origin })
		})
	})
}

// tells reports whether the source record covers a found one.
func (r *Record) tells(f lookup.Found) bool {
	if f.Where == lookup.Unread {
		return !r.Gone && !r.Ahead && f.Name == r.Topic && f.Partition == r.Partition && f.Offset == r.Offset
	}
	return slices.ContainsFunc(r.Decisions, func(d Decision) bool {
		return slices.ContainsFunc(d.Forwarded, func(g Forwarded) bool {
			return g.Found == f.Name && (f.Partition < 0 || g.At == verify.Position{Partition: f.Partition, Offset: f.Offset})
		})
	})
}
