package ledger

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NumberAfter is the number in the cursor of a list that is ordered by numbers, the highest first. The cursor is the
// number of the last line of the page before; empty: 0, for the first page.
func NumberAfter(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 1 || cursor != strconv.FormatInt(n, 10) {
		return 0, ErrBadPage
	}
	return n, nil
}

// NextNumber cuts a list that was asked for one line more than limit. next is the cursor of the page after it; empty:
// there are no more.
func NextNumber[T any](all []T, limit int, number func(T) int64) (page []T, next string) {
	if len(all) <= limit {
		return all, ""
	}
	return all[:limit], strconv.FormatInt(number(all[limit-1]), 10)
}

// GroupPlace is the place of a group in the list of groups: the largest first, then the newest failure.
type GroupPlace struct {
	Open        int64
	Newest      time.Time
	Fingerprint string
}

// Place is the place of g in the list of groups.
func (g Group) Place() GroupPlace { return GroupPlace{g.Open(), g.Newest, g.Fingerprint} }

// Compare orders places as the list of groups does.
func (p GroupPlace) Compare(q GroupPlace) int {
	return cmp.Or(cmp.Compare(q.Open, p.Open), q.Newest.Compare(p.Newest), strings.Compare(p.Fingerprint, q.Fingerprint))
}

// String is the cursor of the groups after p.
func (p GroupPlace) String() string {
	newest := ""
	if !p.Newest.IsZero() {
		newest = strconv.FormatInt(p.Newest.UnixMicro(), 36)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.Open, 36) + " " + newest + " " + p.Fingerprint))
}

func parseGroupPlace(cursor string) (p GroupPlace, err error) {
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(plain), " ")
	if err != nil || len(parts) != 3 || len(parts[2]) != FingerprintLength || strings.Trim(parts[2], "0123456789abcdef") != "" {
		return p, ErrBadPage
	}
	p.Fingerprint = parts[2]
	if p.Open, err = strconv.ParseInt(parts[0], 36, 64); err != nil || p.Open < 0 {
		return GroupPlace{}, ErrBadPage
	}
	if parts[1] != "" {
		micros, err := strconv.ParseInt(parts[1], 36, 64)
		if err != nil {
			return GroupPlace{}, ErrBadPage
		}
		p.Newest = time.UnixMicro(micros).UTC()
	}
	return p, nil
}

// PageOfGroups is the part of a list of groups after a cursor, in their order. A limit of 0 means all. next is the cursor
// of the page after it; empty: there are no more. A group that grows or shrinks between two pages changes its place, so
// it can be on both of them or on neither.
func PageOfGroups[G any](all []G, place func(G) GroupPlace, after string, limit int) (page []G, next string, err error) {
	if after != "" {
		from, err := parseGroupPlace(after)
		if err != nil {
			return nil, "", err
		}
		all = slices.DeleteFunc(slices.Clone(all), func(g G) bool { return from.Compare(place(g)) >= 0 })
	}
	if limit <= 0 || len(all) <= limit {
		return all, "", nil
	}
	return all[:limit], place(all[limit-1]).String(), nil
}
