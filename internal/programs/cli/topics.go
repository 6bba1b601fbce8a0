package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"

	"docket/internal/audit/check"
	"docket/internal/service/config"
)

// mostPartitions is the most partitions that a person can ask for. More are a slip: a broker keeps files for each.
const mostPartitions = 10_000

// mostReplicas is the most replicas that Kafka's protocol can name.
const mostReplicas = 32_767

// CreateTopics is the command that creates the topics that are missing.
func CreateTopics() Command {
	var o topicOptions
	return Command{
		Name: "create", Text: "Create the topics that Docket needs and that do not exist.",
		Example: "  %s create --dry-run\n  %[1]s create --partitions 6\n  %[1]s create --replication 1   # for development, with one broker\n  %[1]s create --json | jq -r '.items[] | select(.result == \"created\") | .name'",
		More: "Prints a plan first: a line for each topic of the settings, also of lanes and shards. Then it creates the topics that\n" +
			"do not exist. It never changes or deletes a topic: of one that exists it says what differs, like `docket check`, and\n" +
			"how to change it. Run it as often as you like.\n\n" +
			"New topics have 12 partitions, or those of the shards, and replication 3. With fewer than three brokers up it creates\n" +
			"nothing unless --replication is given. Homes keep records for 30 days, or for all waits of\n" +
			"DOCKET_PARKING_MAX_BACKOFF if that is longer. They take the largest record of the source with Docket's headers. The\n" +
			"database is not needed.",
		Uses: []string{"DOCKET_KAFKA_BROKERS"},
		Exit: [2]string{"each topic exists and can be used; with --dry-run: or can be created", "a topic could not be created, or one that exists cannot be used"},
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&o.dry, "dry-run", false, "print the plan and let the brokers check it; create nothing")
			f.Func("partitions", "partitions of new topics, at most "+strconv.Itoa(mostPartitions), wholeUpTo(&o.wanted.Partitions, mostPartitions))
			f.Func("replication", "replicas of new topics, at most one a broker (default 3)", wholeUpTo(&o.wanted.Replication, mostReplicas))
			f.BoolVar(&o.asJSON, "json", false, "print JSON")
		},
		Run: func(env Env, _ []string) int {
			looked := env
			looked.Program = config.Consumer // the desk has no parking topic of its own
			s, warnings, err := config.LoadKafka(looked.Program, env.Environ)
			if err != nil {
				say(env.Stderr, "%v\n", err)
				return Misuse
			}
			if n := check.ShardPartitions(s); n > 0 && o.wanted.Partitions > 0 && n != o.wanted.Partitions {
				return misuse(env, fmt.Sprintf("--partitions %d: DOCKET_SHARDS has %d partitions, and each needs a shard", o.wanted.Partitions, n), "create")
			}
			warn(env, warnings)
			ctx, end := UntilSignal(env)
			defer end()
			return createTopics(ctx, env, s, o)
		},
	}
}

// topicOptions are the flags.
type topicOptions struct {
	dry, asJSON bool
	wanted      check.Wanted
}

// wholeUpTo reads a number from 1 to most.
func wholeUpTo(into *int, most int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("must be a number from 1 to %d", most)
		}
		*into = n
		return nil
	}
}

// createTopics prints the plan, then creates.
func createTopics(ctx context.Context, env Env, s config.Settings, o topicOptions) int {
	plans, err := check.Topics(ctx, s, o.wanted)
	if err != nil {
		if ctx.Err() == nil {
			r := check.Unplanned(err)
			say(env.Stderr, "%s: %s; %s\n", env.Called(), r.Detail, r.Hint)
		}
		return Failed
	}
	if !o.asJSON {
		showPlans(env.Stdout, s, plans)
	}
	plans, done := check.CreateTopics(ctx, s, plans, o.wanted, o.dry)
	if ctx.Err() != nil {
		say(env.Stderr, "%s: stopped; run it again to see what exists\n", env.Called())
		return Failed
	}
	failed := check.Failed(done)
	for _, p := range plans {
		failed = failed || check.Failed(p.Findings)
	}
	if o.asJSON {
		printJSON(env.Stdout, topicsOf(plans, done, o.dry, failed))
	} else {
		showCreated(env.Stdout, plans, done, o.dry)
	}
	if failed {
		return Failed
	}
	return Done
}

func showPlans(w io.Writer, s config.Settings, plans []check.TopicPlan) {
	differs := false
	for _, p := range plans {
		if p.Create {
			say(w, "create  topic %s: %s\n", p.Name, p.Describe())
		}
		for _, r := range p.Findings {
			line := fmt.Sprintf("%-6s  %s: %s", r.Level, r.What, r.Detail)
			if r.Hint != "" {
				differs = true
				line += "; " + r.Hint
			}
			say(w, "%v\n", line)
		}
	}
	if differs {
		say(w, "Topics that exist stay as they are. To change a setting: %v\n", check.Alter(s))
	}
}

func showCreated(w io.Writer, plans []check.TopicPlan, done []check.Result, dry bool) {
	existed := map[string]bool{} // made by others meanwhile
	for _, p := range plans {
		existed["topic "+p.Name] = !p.Create
	}
	for _, r := range done {
		line := r.What + ": " + r.Detail
		switch {
		case r.Level == check.Fail && !existed[r.What]:
			line = "not created: " + line + "; " + r.Hint
		case r.Level != check.OK:
			line = fmt.Sprintf("%-6s  %s; %s", r.Level, line, r.Hint)
		}
		say(w, "%v\n", line)
	}
	switch {
	case len(done) == 0 && slices.ContainsFunc(plans, func(p check.TopicPlan) bool { return p.Unknown }):
		say(w, "nothing created: not all topics can be seen\n")
	case len(done) == 0:
		say(w, "nothing to create: all topics exist\n")
	case dry:
		say(w, "dry run: nothing was created\n")
	}
}

// jsonTopics is the answer for programs.
type jsonTopics struct {
	DryRun bool        `json:"dry_run"`
	Failed bool        `json:"failed"`
	Items  []jsonTopic `json:"items"`
}

type jsonTopic struct {
	Name        string            `json:"name"`
	Result      string            `json:"result"` // exists, unknown, created, planned (of a dry run) or failed
	Partitions  int               `json:"partitions,omitempty"`
	Replication int               `json:"replication,omitempty"`
	Settings    map[string]string `json:"settings,omitempty"`
	Findings    []check.Result    `json:"findings"` // of one that exists, or why it was not created
}

func topicsOf(plans []check.TopicPlan, done []check.Result, dry, failed bool) jsonTopics {
	of := map[string]check.Result{}
	for _, r := range done {
		of[r.What] = r
	}
	out := jsonTopics{DryRun: dry, Failed: failed, Items: []jsonTopic{}}
	for _, p := range plans {
		one := jsonTopic{Name: p.Name, Result: "exists", Findings: p.Findings}
		if p.Unknown {
			one.Result = "unknown"
		}
		if p.Create {
			one.Partitions, one.Replication, one.Settings, one.Findings = p.Partitions, p.Replication, p.Settings, []check.Result{}
			r, answered := of["topic "+p.Name]
			switch {
			case !answered: // the brokers were away: the only result is about them
				one.Result, one.Findings = "failed", done
			case r.Level == check.Fail:
				one.Result, one.Findings = "failed", []check.Result{r}
			case dry:
				one.Result = "planned"
			default:
				one.Result = "created"
			}
		}
		out.Items = append(out.Items, one)
	}
	return out
}
