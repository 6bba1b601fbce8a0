package historydb

import (
	"strconv"
	"time"

	"docket/internal/history/reader"
)

// tail is the content of a [reader.Tail] of this store. It moves with each call.
type tail struct {
	horizon horizon
	low     time.Time              // all that was stored before is done with
	told    map[[16]byte]time.Time // those stored since that are done with, and when they were stored
	days    map[taken]bool         // that were archived since, and need no word any more
}

// TailText writes a place to follow from as text: all that was stored before it is done with. It does not name decisions
// behind the place that were told, as they can be hundreds of thousands. They are told again from the text on.
func (r *Reader) TailText(t reader.Tail) (string, error) {
	place, ours := t.Mark.(*tail)
	if !ours {
		return "", reader.ErrCursor
	}
	return placeVersion + strconv.FormatInt(place.low.UnixMicro(), 36), nil
}

// SettledBefore is the time before which all that was stored is done with, also for a place that was read from a text.
// Zero: the place is of another store.
func (r *Reader) SettledBefore(t reader.Tail) time.Time {
	place, ours := t.Mark.(*tail)
	if !ours {
		return time.Time{}
	}
	return place.low
}

// ParseTail reads what TailText wrote.
func (r *Reader) ParseTail(text string) (reader.Tail, error) {
	if len(text) <= len(placeVersion) || text[:len(placeVersion)] != placeVersion {
		return reader.Tail{}, reader.ErrCursor
	}
	micros, err := strconv.ParseInt(text[len(placeVersion):], 36, 64)
	low := time.UnixMicro(micros).UTC()
	if err != nil || low.Year() < 1 || low.Year() > 9999 {
		return reader.Tail{}, reader.ErrCursor
	}
	return reader.Tail{Mark: &tail{low: low, told: map[[16]byte]time.Time{}}}, nil
}

// placeVersion is what the text of a place begins with.
const placeVersion = "1s"
