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

// whereIs looks for a record in every home, and in the spools of this host.
func whereIs(s config.Settings, elsewhere func(context.Context, string) (lookup.Answer, error)) func(context.Context, string) (api.Whereabouts, error) {
	return func(ctx context.Context, query string) (api.Whereabouts, error) {
		sys, err := inspect.Open(s, inspect.Options{Elsewhere: elsewhere})
		if err != nil {
			return api.Whereabouts{}, err
		}
		defer sys.Close()
		found, err := sys.Find(ctx, inspect.ParseQuery(query), time.Now().Add(-farBack))
		if err != nil {
			return api.Whereabouts{}, err
		}
		out := api.Whereabouts{Decisions: []api.DecisionHomes{}, Found: lookup.Views(found.Found, found.At), Looked: append([]string{}, found.Looked...), Unlooked: found.Unlooked}
		out.Text, out.Report, out.Settled = cli.Where(s, found)
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
		return out, nil
	}
}
