package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/desk/api"
	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

const (
	// verifyBack is how far back a desk verifies unless it is told.
	verifyBack = time.Hour
	// mostForwarded limits the forwarded records that a verification keeps in memory, about 0.5 KiB each.
	mostForwarded = 200_000
)

// verifyIn verifies with connections of its own, which end with it. With several shards each is verified in its shard.
func verifyIn(s config.Settings) func(ctx context.Context, scope api.VerifyScope) (api.Verification, error) {
	return func(ctx context.Context, scope api.VerifyScope) (out api.Verification, err error) {
		if s.Share() != nil || len(s.EveryShard()) > 1 {
			return out, &api.UnableError{Why: "each shard has topics and a table of its own, and a desk verifies none of them", Do: "run docket verify in the shard"}
		}
		what, err := scopeOf(s, scope)
		if err != nil {
			return out, err
		}
		sys, err := inspect.Open(s, inspect.Options{Shelf: shelfOf(s)})
		if err != nil {
			return out, err
		}
		defer sys.Close()
		result, err := sys.Verify(ctx, what)
		var many *inspect.TooManyError
		if errors.As(err, &many) {
			return out, &api.UnableError{Why: many.Error(), Do: "verify less: a later time with since; or run docket verify on another host, which has no such limit"}
		}
		if err != nil {
			return out, unplaced(err)
		}
		out.Text, out.Report, out.Broken = cli.Verified(s, result)
		return out, nil
	}
}

// unplaced is the error of a verification, in the words of the API where a place is in no partition.
func unplaced(err error) error {
	if none, ok := errors.AsType[*inspect.NoPartitionError](err); ok {
		return &api.PlaceError{Expected: "in a partition of " + none.Topic + ", which lacks one that was named"}
	}
	if beyond, ok := errors.AsType[*inspect.BeyondEndError](err); ok {
		return &api.PlaceError{Expected: fmt.Sprintf("below the end of its partition: %s/%d ends at %d", beyond.Topic, beyond.Partition, beyond.End)}
	}
	return err
}

// scopeOf reads the places of a scope.
func scopeOf(s config.Settings, scope api.VerifyScope) (inspect.Scope, error) {
	what := inspect.Scope{Since: scope.Since, Settled: scope.Settled, MostForwarded: mostForwarded}
	if what.Since.IsZero() {
		what.Since = time.Now().Add(-verifyBack)
	}
	for _, text := range scope.From {
		q := inspect.ParseQuery(text)
		if _, ours := s.Source(q.Topic); !ours || strings.Count(text, "/") != 2 {
			return what, &api.PlaceError{Expected: "TOPIC/PARTITION/OFFSET in the source topic " + strings.Join(s.SourceTopics(), " or ")}
		}
		if what.From == nil {
			what.From = verify.Offsets{}
		}
		what.From[verify.Partition{Topic: q.Topic, Number: q.Partition}] = q.Offset
	}
	return what, nil
}
