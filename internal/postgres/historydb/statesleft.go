package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A decision of a day that left the table may be stored again: no row is left that it could duplicate. The states may have had it
// then, and do not know which decisions they had. So they treat the decisions of such days with care: see [state.State.Apply].

// leftNamesSQL are the days that are not in the table.
const leftNamesSQL = `SELECT day FROM decision_counts_left WHERE isfinite(day)`

// dayMicros is the length of a day in UTC, in microseconds.
const dayMicros = int64(24 * time.Hour / time.Microsecond)

// days are days in UTC, each by how many came before it since 1970.
type days map[int64]bool

// left reads the days that had left the table in the snapshot of tx. It knows of none if this role may not read them.
func (s *States) left(ctx context.Context, tx pgx.Tx) (days, error) {
	var readable bool
	if err := tx.QueryRow(ctx, leftReadableSQL).Scan(&readable); err != nil || !readable {
		return nil, err
	}
	rows, err := tx.Query(ctx, leftNamesSQL)
	if err != nil {
		return nil, err
	}
	gone := days{}
	var day time.Time
	_, err = pgx.ForEachRow(rows, []any{&day}, func() error {
		gone[dayOf(day.UnixMicro())] = true
		return nil
	})
	return gone, err
}

// dayOf is the day of a time in microseconds since 1970, which may be earlier.
func dayOf(micros int64) int64 {
	day := micros / dayMicros
	if micros%dayMicros < 0 {
		day--
	}
	return day
}

// leftTimes tells which times are of days that left the table. Most times are of the day of the one before.
type leftTimes struct {
	gone days
	day  int64
	is   bool
	any  bool // day and is are of some time
}

func (l *leftTimes) has(micros int64) bool {
	if len(l.gone) == 0 {
		return false
	}
	if day := dayOf(micros); !l.any || day != l.day {
		l.day, l.is, l.any = day, l.gone[day], true
	}
	return l.is
}
