package desk

import (
	"context"
	"errors"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/archive/nightly"
	"docket/internal/history/cold"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// archives are the questions about the archive of a desk, and the act on it.
type archives struct {
	days *cold.Days
	// asked reads the table. owner may change what is noted of its days.
	asked, owner *store.Store
	// wanted says that a desk archives days by itself.
	wanted bool
	// none is the error of a desk without an archive; nil: it has one.
	none error
}

// archivesOf makes them. With shards each has an archive of its own, and a list of one would look like that of all.
func (p *Program) archivesOf(s config.Settings, days *cold.Days) *archives {
	a := &archives{days: days, asked: p.parts.asked, owner: p.parts.owner, wanted: s.ArchiveAfter != ""}
	switch {
	case s.Share() != nil || p.parts.everywhere != nil:
		a.none = &api.UnableError{Why: "each shard has an archive of its own, and a desk lists none of them", Do: "run the command in the shard, with DOCKET_DATABASE_URL"}
	case days.None():
		a.none = &api.UnableError{Why: "the desk has no archive", Do: "set DOCKET_ARCHIVE_TO of docket desk"}
	}
	return a
}

// inventory says what the archive has and lacks.
func (a *archives) inventory(ctx context.Context) (*inventory.Inventory, error) {
	if a.none != nil {
		return nil, a.none
	}
	book := ledgerdb.New(a.asked.DB)
	return a.days.Inventory(ctx, inventory.Source{
		Table: historydb.NewArchives(a.asked.DB), Today: archive.DayOf(time.Now()), Wanted: a.wanted,
		Note: func(ctx context.Context) (string, time.Time, error) { return book.Remembered(ctx, nightly.NoteName) },
	})
}

// prove reads an archive and checks it against its manifest.
func (a *archives) prove(ctx context.Context, name string) error {
	if a.none != nil {
		return a.none
	}
	return a.days.Prove(ctx, name)
}

// forget notes that a day is given up, by the login that archives days.
func (a *archives) forget(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (*archive.Forgotten, string, error) {
	if a.none != nil {
		return nil, "", a.none
	}
	shelf, err := a.days.Open()
	if err != nil {
		return nil, "", err
	}
	c := archive.Carrier{Table: historydb.NewArchives(a.owner.DB), Shelf: shelf, By: by.Name, Docket: buildinfo.String(), Now: time.Now}
	earlier, err := c.Forget(ctx, day, by.Why, dry)
	return earlier, shelf.String(), withAct(err)
}

// forgetLetters notes that the archives of dead letters of a day are given up, by the same login.
func (a *archives) forgetLetters(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (done archive.LettersForgotten, where string, err error) {
	if a.none != nil {
		return done, "", a.none
	}
	shelf, err := a.days.Open()
	if err != nil {
		return done, "", err
	}
	c := archive.LettersCarrier{Table: historydb.NewLetterArchives(a.owner.DB), Shelf: shelf, By: by.Name, Docket: buildinfo.String(), Now: time.Now}
	done, err = c.Forget(ctx, day, by.Why, dry)
	return done, shelf.String(), withAct(err)
}

// withAct keeps the act of an error of the storage in its words.
func withAct(err error) error {
	if lacks := (*archive.ShelfError)(nil); errors.As(err, &lacks) {
		return &archive.ShelfError{Err: err, Do: lacks.Do}
	}
	return err
}
