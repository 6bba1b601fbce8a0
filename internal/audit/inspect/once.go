package inspect

import (
	"context"
	"path/filepath"

	"docket/internal/history/claims"
	"docket/internal/history/cold"
	"docket/internal/history/cold/cache"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/redis"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// fetching has one of the processes that share the cache fetch a file. A question takes the fetch over.
func fetching(s config.Settings, shared *claims.Once) cache.Claim {
	return func(ctx context.Context, _, file string, high bool) (working context.Context, release func(), ok bool) {
		priority := claims.Low
		if high {
			priority = claims.High
		}
		return shared.Try(ctx, cold.FetchKey(results(s), s.ArchiveTo, file), priority)
	}
}

// results is the directory in which processes find what one of them read for all; empty: they share nothing.
func results(s config.Settings) string {
	if s.ArchiveTo == "" || s.CacheDir == "" {
		return ""
	}
	return filepath.Join(s.CacheDir, "results")
}

// once has one of the processes that share results read an archived day: by claims in Redis where the settings name
// one, and else, or while it is away, in the database. nil: they share nothing. It dials nobody.
func once(s config.Settings, db *store.Store) *claims.Once {
	if results(s) == "" {
		return nil
	}
	var ports []claims.Port
	if s.RedisURL != "" {
		if c, err := redis.NewClaims(app.Redis(s), s.KafkaGroup); err == nil { // else the database has the claims
			ports = append(ports, c)
		}
	}
	return claims.NewOnce(append(ports, historydb.NewClaims(db.DB))...)
}
