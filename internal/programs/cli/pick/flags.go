package pick

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
)

// Flags are the flags that choose dead letters.
type Flags struct {
	fingerprint, code, kind, path, since, until, topic string
	states                                             []string
	partition                                          int32
	Flags                                              *pflag.FlagSet
}

// Declare adds the flags to a command, with their completions.
func (f *Flags) Declare(call frame.Call, c *cobra.Command) {
	f.Flags = c.Flags()
	f.Flags.StringVar(&f.fingerprint, "fingerprint", "", "only this `GROUP`: a fingerprint of docket dlq groups, or its first 4 or more characters")
	f.Flags.StringVar(&f.code, "code", "", "only this error `CODE`")
	f.Flags.StringVar(&f.kind, "kind", "", "only this `KIND` of failure")
	f.Flags.StringVar(&f.path, "path", "", "only this `PATH`, the whole path")
	f.Flags.StringSliceVar(&f.states, "state", nil, "only this `STATE` (default: all); can be repeated")
	f.Flags.StringVar(&f.since, "since", "", "only those that last failed since `TIME`")
	f.Flags.StringVar(&f.until, "until", "", "only those that last failed before `TIME`")
	f.Flags.StringVar(&f.topic, "topic", "", "only from this original `TOPIC`")
	f.Flags.Int32Var(&f.partition, "partition", 0, "only from this original partition `N`, from 0")
	frame.MarkFilters(f.Flags, filterNames())
	completeFilter(call, c)
}

// filterNames are the flags that choose.
func filterNames() []string {
	return []string{"fingerprint", "code", "kind", "path", "state", "since", "until", "topic", "partition"}
}

// Given says whether anything is chosen.
func (f *Flags) Given() bool {
	for _, name := range filterNames() {
		if f.Flags.Changed(name) {
			return true
		}
	}
	return false
}

func kinds() []string {
	return []string{string(envelope.Decode), string(envelope.Data), string(envelope.Conflict), string(envelope.Transient), string(envelope.Exhausted), string(envelope.Foreign)}
}

func stateNames() []string {
	var names []string
	for _, state := range ledger.States() {
		names = append(names, string(state))
	}
	return names
}

// leastFingerprint is how many characters of a fingerprint are enough.
const leastFingerprint = 4

// Filter is the filter that the flags describe.
func (f *Flags) Filter(now time.Time) (ledger.Filter, error) {
	filter := ledger.Filter{Fingerprint: strings.ToLower(f.fingerprint), Code: f.code, Path: f.path, Topic: f.topic}
	if n := len(f.fingerprint); f.Flags.Changed("fingerprint") && (n < leastFingerprint || n > ledger.FingerprintLength || strings.Trim(filter.Fingerprint, "0123456789abcdef") != "") {
		return filter, frame.Misuse("%s is not a fingerprint: give %d to %d hex digits, as `docket dlq groups` prints them", term.Quoted(f.fingerprint), leastFingerprint, ledger.FingerprintLength)
	}
	for _, name := range filterNames() {
		if flag := f.Flags.Lookup(name); flag.Changed && flag.Value.String() == "" {
			return filter, frame.Misuse("--%s is empty", name)
		}
	}
	if f.kind != "" {
		kind, err := frame.Among("kind", strings.ToLower(f.kind), kinds())
		if err != nil {
			return filter, err
		}
		filter.Kind = envelope.Kind(kind)
	}
	for _, given := range f.states {
		state, err := frame.Among("state", strings.ToUpper(given), stateNames())
		if err != nil {
			return filter, err
		}
		filter.States = append(filter.States, ledger.State(state))
	}
	if f.Flags.Changed("partition") {
		if f.partition < 0 {
			return filter, frame.Misuse("--partition must be 0 or more")
		}
		filter.Partition = &f.partition
	}
	var err error
	filter.From, filter.To, err = frame.Between(f.since, f.until, now)
	return filter, err
}

// Words are the flags of a filter, for a shell.
func Words(f ledger.Filter) []string {
	var out []string
	add := func(flag, value string) {
		if value != "" {
			out = append(out, flag, term.ShellWord(value))
		}
	}
	add("--fingerprint", f.Fingerprint)
	add("--kind", string(f.Kind))
	add("--code", f.Code)
	add("--path", f.Path)
	for _, state := range f.States {
		add("--state", string(state))
	}
	if !f.From.IsZero() {
		add("--since", f.From.UTC().Format(time.RFC3339))
	}
	if !f.To.IsZero() {
		add("--until", f.To.UTC().Format(time.RFC3339))
	}
	add("--topic", f.Topic)
	if f.Partition != nil {
		add("--partition", fmt.Sprint(*f.Partition))
	}
	return out
}

// Described is a filter in words.
func Described(f ledger.Filter) string {
	if w := Words(f); len(w) > 0 {
		return term.Line(strings.Join(w, " "))
	}
	return "all"
}

// ofGroups suggests what the groups of the ledger have.
func ofGroups(call frame.Call, of func(g ledger.Group) []string) frame.Completion {
	return call.Suggest(func(ctx context.Context, _ string) ([]string, error) {
		groups, err := call.Sys.Book.Groups(ctx, ledger.Filter{})
		var out []string
		for _, g := range groups {
			out = append(out, of(g)...)
		}
		return out, err
	})
}

// completeFilter teaches a shell the values of these flags.
func completeFilter(call frame.Call, c *cobra.Command) {
	frame.Complete(c, map[string]frame.Completion{
		"fingerprint": ofGroups(call, func(g ledger.Group) []string {
			return []string{g.Fingerprint + "\t" + term.Brief(fmt.Sprintf("%d open, %s %s", g.Open(), g.Code, Object(g)))}
		}),
		"code":      ofGroups(call, func(g ledger.Group) []string { return []string{g.Code} }),
		"path":      ofGroups(call, func(g ledger.Group) []string { return g.Paths }),
		"kind":      frame.Fixed(kinds()),
		"state":     frame.Fixed(stateNames()),
		"since":     frame.Fixed(frame.TimeWords),
		"until":     frame.Fixed(frame.TimeWords),
		"topic":     frame.Fixed([]string{call.Setting("DOCKET_KAFKA_TOPIC")}),
		"partition": frame.Fixed(nil),
	})
}

// Object is the constraint, column or table that the database named.
func Object(g ledger.Group) string {
	switch {
	case g.Constraint != "":
		return g.Constraint
	case g.Column != "":
		return "column " + g.Column
	}
	return g.Table
}

// Which is the filter of a job in words, without the states PENDING and FAILED that each job has.
func Which(f ledger.Filter) string {
	if len(f.States) == 2 {
		f.States = nil
	}
	return Described(f)
}

// Chosen are the flags of a filter, for commands that move dead letters.
func Chosen(f ledger.Filter) string {
	if len(f.States) == 2 {
		f.States = nil
	}
	if flags := Words(f); len(flags) > 0 {
		return strings.Join(flags, " ")
	}
	return "--all"
}
