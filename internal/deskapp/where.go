package deskapp

import (
	"context"
	"fmt"
	"time"

	"docket/internal/cli"
	"docket/internal/config"
	"docket/internal/deskapi"
	"docket/internal/inspect"
)

// farBack is how far back topics are read for a decision that has no row.
const farBack = 24 * time.Hour

// whereIs looks for a record in every home but the spools, which are on other hosts.
func whereIs(s config.Settings) func(context.Context, string) (deskapi.Whereabouts, error) {
	return func(ctx context.Context, query string) (deskapi.Whereabouts, error) {
		sys, err := inspect.Open(s, inspect.Options{})
		if err != nil {
			return deskapi.Whereabouts{}, err
		}
		defer sys.Close()
		found, err := sys.Find(ctx, inspect.ParseQuery(query), time.Now().Add(-farBack))
		if err != nil {
			return deskapi.Whereabouts{}, err
		}
		out := deskapi.Whereabouts{Decisions: []deskapi.DecisionHomes{}, Looked: append([]string{}, found.Looked...), Unlooked: found.Unlooked}
		for i := range found.Refused {
			out.Refused = append(out.Refused, deskapi.LetterOf(found.Refused[i]))
		}
		for i := range found.Records {
			r := &found.Records[i]
			for j := range r.Decisions {
				d := &r.Decisions[j]
				out.Decisions = append(out.Decisions, deskapi.DecisionHomes{
					Record: fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset), ID: d.ID, Homes: cli.Homes(s, found, r, d),
				})
			}
		}
		return out, nil
	}
}
