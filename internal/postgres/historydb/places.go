package historydb

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
)

// The indexed expressions of a service, and of a path and its outcome, as in [migrations.DayIndexes].
const (
	hostKeySQL    = `hashtext(rtrim(d.requested_by, '0123456789') COLLATE "C")`
	serviceKeySQL = `hashtext(d.service COLLATE "C")`
	pathKeySQL    = `((hashtext(d.path COLLATE "C") & -4) | CASE WHEN d.allowed THEN 1 WHEN NOT d.allowed THEN 2 ELSE 0 END)`
	verdictKeySQL = `d.allowed IS NOT TRUE AND (CASE WHEN NOT d.allowed THEN 1 WHEN coalesce(d.raw->'error', 'null') <> 'null' THEN 2 WHEN coalesce(d.raw->'result', 'null') = 'null' THEN 3 ELSE 4 END)`
)

// verdictKeys are what that index has of verdicts. It has no allowed ones.
var verdictKeys = map[reader.Verdict]int32{reader.Denied: 1, reader.Error: 2, reader.Undefined: 3, reader.Other: 4}

// verdicts are the keys of all verdicts that the filter can mean; none where the index lacks one of them.
func (s *search) verdicts() (keys []int32) {
	for _, v := range s.filter.Verdicts {
		key, has := verdictKeys[v]
		if !has {
			return nil
		}
		keys = append(keys, key)
	}
	return keys
}

// spotKey is what the index has of a path and its outcome. Others may share it.
type spotKey struct{ service, path int32 }

// outcomes are what a place has in its last bits.
func (s *search) outcomes() (of []int32) {
	for i, verdicts := range [][]reader.Verdict{{reader.Undefined, reader.Error, reader.Other}, {reader.Allowed}, {reader.Denied}} {
		if asksFor(s.filter.Verdicts, verdicts) {
			of = append(of, int32(i))
		}
	}
	return of
}

// asksFor says whether any of these is asked for.
func asksFor(verdicts, of []reader.Verdict) bool {
	return len(verdicts) == 0 || slices.ContainsFunc(of, func(v reader.Verdict) bool { return slices.Contains(verdicts, v) })
}

// aim finds out which services, and which paths of theirs, are all that the filter can mean, and says whether it could.
func (s *search) aim() bool {
	for _, p := range s.filter.Paths {
		prefix, below := strings.CutSuffix(p, "/*")
		if below {
			p = prefix + "/"
		}
		service, _, _ := strings.Cut(strings.TrimLeft(p, "/"), "/") // as it is stored
		switch {
		case service == "":
			return false
		case below:
			s.below = append(s.below, service)
		default:
			s.exact = append(s.exact, [2]string{service, p})
		}
	}
	if len(s.filter.Paths) == 0 {
		s.below = s.filter.Services
	}
	return len(s.exact)+len(s.below) > 0
}

const (
	// placesSQL are the places of paths, and after them those of the services alone, with a path of 0.
	placesOfSQL = `SELECT hashtext(p.service COLLATE "C"), (hashtext(p.path COLLATE "C") & -4) | v FROM unnest($1::text[], $2::text[]) AS p(service, path), unnest($3::int[]) AS v
 UNION SELECT hashtext(s COLLATE "C"), NULL FROM unnest($4::text[]) AS s`
	// belowSQL steps from each place of a service to the next one, in the days of a window: whole days, as in one a place is found by one
	// step down the index.
	belowSQL = `
WITH RECURSIVE p(path) AS (
	(SELECT ` + pathKeySQL + ` FROM decision_logs d WHERE ` + serviceKeySQL + ` = $1::int
	    AND d.ts >= $2::timestamptz AND d.ts < $3::timestamptz ORDER BY ` + pathKeySQL + ` LIMIT 1)
	UNION ALL
	SELECT (SELECT ` + pathKeySQL + ` FROM decision_logs d WHERE ` + serviceKeySQL + ` = $1::int AND ` + pathKeySQL + ` > p.path
	           AND d.ts >= $2::timestamptz AND d.ts < $3::timestamptz ORDER BY ` + pathKeySQL + ` LIMIT 1)
	  FROM p WHERE p.path IS NOT NULL)
SELECT path FROM p WHERE path IS NOT NULL LIMIT $4::int`
)

// aimed finds the places that are known from the beginning.
func (s *search) aimed(ctx context.Context, tx pgx.Tx) error {
	services, paths := make([]string, len(s.exact)), make([]string, len(s.exact))
	for i, e := range s.exact {
		services[i], paths[i] = e[0], e[1]
	}
	rows, err := tx.Query(ctx, placesOfSQL, services, paths, s.outcomes(), s.below)
	if err != nil {
		return err
	}
	var service int32
	var path *int32
	_, err = pgx.ForEachRow(rows, []any{&service, &path}, func() error {
		if path == nil {
			s.services = append(s.services, service)
		} else {
			s.known = append(s.known, spotKey{service, *path})
		}
		return nil
	})
	return err
}

// places are those that the window may have of what the filter means; manyPlaces and one where there are more.
func (s *search) places(ctx context.Context, tx pgx.Tx, to time.Time) ([]spotKey, error) {
	if len(s.services) == 0 {
		return s.known, nil
	}
	from, until := s.at.at, to
	if !s.oldest {
		from, until = to, s.at.at
	}
	day := 24 * time.Hour
	from = from.UTC().Truncate(day)
	if until.IsZero() {
		until = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	until = until.UTC().Truncate(day).Add(day)
	places, seen, outcomes := slices.Clone(s.known), map[spotKey]bool{}, s.outcomes()
	for _, p := range places {
		seen[p] = true
	}
	for _, service := range s.services {
		rows, err := tx.Query(ctx, in(s.source.name, belowSQL), service, from, until, manyPlaces+1)
		if err != nil {
			return nil, err
		}
		paths, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if p := (spotKey{service, path}); slices.Contains(outcomes, path&3) && !seen[p] {
				places = append(places, p)
			}
		}
		if len(paths) > manyPlaces || len(places) > manyPlaces {
			return make([]spotKey, manyPlaces+1), nil
		}
	}
	return places, nil
}
