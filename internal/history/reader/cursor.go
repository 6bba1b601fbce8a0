package reader

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Spot is a place in the order of (ts, decision_id): behind the decision with that identity. With an empty ID it is
// before all decisions of that time in either direction, so the next page begins there. The zero value is the beginning.
type Spot struct {
	Time time.Time
	ID   string
}

// SpotOf returns the place behind a decision.
func SpotOf(d Decision) Spot { return Spot{d.Time.UTC().Round(0), d.ID} }

// IsZero reports whether a search begins there.
func (s Spot) IsZero() bool { return s == Spot{} }

// Compare orders places, ids byte by byte, with the oldest first.
func (s Spot) Compare(other Spot) int {
	return cmp.Or(s.Time.Compare(other.Time), strings.Compare(s.ID, other.ID))
}

// The version of cursors; the letter is their order.
const newestCursor, oldestCursor = "1n", "1o"

func cursorOf(oldest bool) string {
	if oldest {
		return oldestCursor
	}
	return newestCursor
}

// Cursor returns the place as [Page.After] has it. The table and the archives share this form, so a page can begin
// where either of them ended.
func (s Spot) Cursor(oldest bool) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorOf(oldest) + strconv.FormatInt(s.Time.UnixMicro(), 36) + " " + s.ID))
}

// ParseCursor reads a cursor of that order; an empty one is the beginning. The error is [ErrCursor].
func ParseCursor(text string, oldest bool) (Spot, error) {
	if text == "" {
		return Spot{}, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Spot{}, ErrCursor
	}
	rest, ours := strings.CutPrefix(string(plain), cursorOf(oldest))
	at, id, cut := strings.Cut(rest, " ")
	micros, err := strconv.ParseInt(at, 36, 64)
	if !ours || !cut || err != nil || strings.ContainsRune(id, 0) || strings.ToValidUTF8(id, "") != id {
		return Spot{}, ErrCursor
	}
	s := Spot{time.UnixMicro(micros).UTC(), id}
	if s.Time.Year() < -1 || s.Time.Year() > 10_000 {
		return Spot{}, ErrCursor
	}
	return s, nil
}

// Placing is a [Store] that has cursors of its own.
type Placing interface {
	// CursorAt returns the cursor behind the decision of a place, which a shard has, for pages of an order. Without a
	// shard it is behind the decisions of that identity in all shards.
	CursorAt(at Spot, shard string, oldest bool) string
}

// CursorAt returns the cursor behind a decision for pages of an order, as [Placing] does. It need not be the order in which
// the decision was found, so a reader can turn around.
func CursorAt(store Store, at Spot, shard string, oldest bool) string {
	if own, ok := store.(Placing); ok {
		return own.CursorAt(at, shard, oldest)
	}
	return at.Cursor(oldest)
}
