package desk

import (
	"context"
	"fmt"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/desk/api"
	"docket/internal/history/archive"
	"docket/internal/history/archive/shelf"
	"docket/internal/history/lookup"
	"docket/internal/postgres/store"
	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

// farBack is how far back topics are read for a decision that has no row.
const farBack = 24 * time.Hour

// shareLook makes the look-up by id of the API. Requests at the same time share one look. The topics of sight stay
// open, and its Quiet says when nothing waits in them.
func shareLook(s config.Settings, db *store.Store, sight inspect.Sight) *lookup.Shared {
	sight.Shelf = shelfOf(s)
	return lookup.NewShared(inspect.Looking(s, db, sight))
}

func shelfOf(s config.Settings) func(string) (archive.Shelf, error) {
	return func(where string) (archive.Shelf, error) { return shelf.Open(where, s) }
}

// elsewhere looks for an id in every home.
type elsewhere = func(context.Context, string) (lookup.Answer, error)

// whereIs looks for a record in every home, and in the spools of this host. Of several shards it asks each that may have
// the record, by the look-up of that shard.
func whereIs(s config.Settings, all elsewhere, shards []lookup.ShardLook) func(context.Context, string) (api.Whereabouts, error) {
	return func(ctx context.Context, query string) (api.Whereabouts, error) {
		q := inspect.ParseQuery(query)
		out := api.Whereabouts{Decisions: []api.DecisionHomes{}, Looked: []string{}}
		every := s.EveryShard()
		if len(every) == 1 {
			found, err := whereIn(ctx, s, all, q)
			if err != nil {
				return api.Whereabouts{}, err
			}
			addWhere(&out, s, found, "")
			out.Text, out.Report, out.Settled = cli.Where(s, found)
			return out, nil
		}
		var told []cli.ShardWhere
		cli.WhereInShards(ctx, every, q, func(ctx context.Context, one config.Settings, q inspect.Query) (*inspect.Whereabouts, error) {
			return whereIn(ctx, one, ofShard(shards, one.ShardName), q)
		}, func(one cli.ShardWhere) { told = append(told, one) })
		for _, one := range cli.Whole(told) {
			if one.Err != nil {
				out.Unlooked = append(out.Unlooked, fmt.Sprintf("shard %s: %v", one.Of.ShardName, one.Err))
				continue
			}
			addWhere(&out, one.Of, one.Found, "shard "+one.Of.ShardName+", ")
		}
		if ctx.Err() != nil {
			return api.Whereabouts{}, ctx.Err()
		}
		out.Text, out.Report, out.Settled = cli.WhereOfShards(told)
		return out, nil
	}
}

// ofShard looks for an id in every home of one shard. It is nil if nobody knows the shard.
func ofShard(all []lookup.ShardLook, name string) elsewhere {
	for _, one := range all {
		if one.Name == name {
			return func(ctx context.Context, id string) (lookup.Answer, error) { return one.Look.Find(ctx, id), nil }
		}
	}
	return nil
}

func whereIn(ctx context.Context, s config.Settings, of elsewhere, q inspect.Query) (*inspect.Whereabouts, error) {
	sys, err := inspect.Open(s, inspect.Options{Elsewhere: of})
	if err != nil {
		return nil, err
	}
	defer sys.Close()
	return sys.Find(ctx, q, time.Now().Add(-farBack))
}

// addWhere adds what was found. The names of places begin with the shard, if there are several.
func addWhere(out *api.Whereabouts, s config.Settings, found *inspect.Whereabouts, shard string) {
	out.Found = append(out.Found, lookup.Views(found.Found, found.At)...)
	for _, place := range found.Looked {
		out.Looked = append(out.Looked, shard+place)
	}
	for _, place := range found.Lacks() {
		out.Unlooked = append(out.Unlooked, shard+place)
	}
	for _, place := range found.Forgotten {
		out.Forgotten = append(out.Forgotten, shard+place)
	}
	for i := range found.Refused {
		out.Refused = append(out.Refused, api.LetterOf(found.Refused[i]))
	}
	for i := range found.Records {
		r := &found.Records[i]
		for j := range r.Decisions {
			d := &r.Decisions[j]
			out.Decisions = append(out.Decisions, api.DecisionHomes{
				Record: fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset), Lane: s.LaneName(r.Topic), ID: d.ID, Homes: cli.Homes(s, found, r, d),
			})
		}
	}
}
