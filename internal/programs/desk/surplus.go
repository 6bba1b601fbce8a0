package desk

import (
	"context"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// archiveSurplus archives dead letters that were left in Kafka, in an archive of the day on which they were left. It is nil where the
// desk has no archive.
func archiveSurplus(s config.Settings, db *store.Store) func(context.Context, *ledger.Surplus, func(func([]ledger.Letter) error) error) (string, int64, error) {
	if s.ArchiveTo == "" {
		return nil
	}
	return func(ctx context.Context, r *ledger.Surplus, read func(func([]ledger.Letter) error) error) (string, int64, error) {
		shelf, err := shelfOf(s)(s.ArchiveTo)
		if err != nil {
			return "", 0, err
		}
		if c, ok := shelf.(interface{ Close() }); ok {
			defer c.Close()
		}
		c := &archive.LettersCarrier{
			Table: historydb.NewLetterArchives(db.DB), Shelf: shelf, By: name, Docket: buildinfo.String(), Now: time.Now, LineBytes: archive.MostLine(int64(s.MaxRecordBytes)),
		}
		return c.Keep(ctx, archive.DayOf(r.LeftAt), func(each func(line []byte) error) error {
			return read(func(letters []ledger.Letter) error {
				lines, err := ledgerdb.New(db.DB).Lines(ctx, letters, ledger.Actor{Name: name, Why: "archived from its dead-letter topic, as its client brought too many"})
				if err != nil {
					return err
				}
				for _, line := range lines {
					if err := each(line); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
