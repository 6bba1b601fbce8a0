package reader

import (
	"context"
	"errors"
	"slices"
)

// LeastID is the least length of a shortened id.
const LeastID = 6

// ErrWhole says that a shortened id could not be looked up.
var ErrWhole = errors.New("give the whole id")

// AmbiguousError says that several ids begin with these characters.
type AmbiguousError struct {
	Some []Row // some of them, one for each id
	More bool  // there are more
}

func (*AmbiguousError) Error() string {
	return "several decision ids start with it; give more characters"
}

// candidates limits the decisions in an [AmbiguousError].
const candidates = 5

// Named returns the decisions of an id, oldest first, or of the only stored id that begins with it, if that has
// [LeastID] characters. An exact id wins over a longer one. nil means none. The error may be an [*AmbiguousError] or
// [ErrWhole]. A [*PartialError] comes with what the other shards have.
func Named(ctx context.Context, s Store, id string) ([]Decision, error) {
	var parts Parts
	all, err := s.ByID(ctx, id)
	if err = parts.Pass(err); err != nil {
		return nil, err
	}
	if len(all) > 0 || !Shortened(id) {
		return all, parts.Err()
	}
	found, err := s.Begins(ctx, id, candidates+1)
	err = parts.Pass(err)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, parts.Err()
	case len(found) == 1:
		all, err = s.ByID(ctx, found[0].ID)
		if err = parts.Pass(err); err != nil {
			return nil, err
		}
		return all, parts.Err()
	}
	several := &AmbiguousError{More: len(found) > candidates}
	for _, d := range found[:min(len(found), candidates)] {
		several.Some = append(several.Some, d.Row)
	}
	return nil, several
}

// MayBeWhole reports whether an id may be whole although [Named] returned this for it: longer ids, or [ErrWhole]. Then it
// is in another place than the table. An id that begins like a UUID is taken for a shortened one.
func MayBeWhole(id string, all []Decision, err error) bool {
	var several *AmbiguousError
	switch {
	case errors.Is(err, ErrWhole):
		return true
	case errors.As(err, &several):
		return slices.ContainsFunc(several.Some, func(r Row) bool { return !isUUID(r.ID) })
	}
	return len(all) > 0 && all[0].ID != id && !isUUID(all[0].ID)
}

// Shortened reports whether an id that no decision has may be the first characters of one.
func Shortened(id string) bool { return len(id) >= LeastID && !isUUID(id) }

// isUUID reports whether an id has the length and dashes of a UUID, so that it is whole.
func isUUID(id string) bool {
	return len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}
