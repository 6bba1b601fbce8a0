package deskcli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/record/envelope"
	"docket/internal/service/config"
)

// filterFlags choose dead letters.
type filterFlags struct {
	fingerprint, code, kind, path, since, until, topic string
	states                                             []string
	partition                                          int32
	flags                                              *pflag.FlagSet
}

func (f *filterFlags) declare(s *session, c *cobra.Command) {
	f.flags = c.Flags()
	f.flags.StringVar(&f.fingerprint, "fingerprint", "", "only this `GROUP`: a fingerprint of docket dlq groups, or its first 4 or more characters")
	f.flags.StringVar(&f.code, "code", "", "only this error `CODE`")
	f.flags.StringVar(&f.kind, "kind", "", "only this `KIND` of failure")
	f.flags.StringVar(&f.path, "path", "", "only this `PATH`, the whole path")
	f.flags.StringSliceVar(&f.states, "state", nil, "only this `STATE` (default: all); can be repeated")
	f.flags.StringVar(&f.since, "since", "", "only those that last failed since `TIME`")
	f.flags.StringVar(&f.until, "until", "", "only those that last failed before `TIME`")
	f.flags.StringVar(&f.topic, "topic", "", "only from this original `TOPIC`")
	f.flags.Int32Var(&f.partition, "partition", 0, "only from this original partition `N`, from 0")
	markFilters(f.flags, filterNames())
	s.completeFilter(c)
}

// filterNames are the flags that choose.
func filterNames() []string {
	return []string{"fingerprint", "code", "kind", "path", "state", "since", "until", "topic", "partition"}
}

// given says whether anything is chosen.
func (f *filterFlags) given() bool {
	for _, name := range filterNames() {
		if f.flags.Changed(name) {
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

func (f *filterFlags) filter(now time.Time) (ledger.Filter, error) {
	filter := ledger.Filter{Fingerprint: strings.ToLower(f.fingerprint), Code: f.code, Path: f.path, Topic: f.topic}
	if n := len(f.fingerprint); f.flags.Changed("fingerprint") && (n < leastFingerprint || n > ledger.FingerprintLength || strings.Trim(filter.Fingerprint, "0123456789abcdef") != "") {
		return filter, misuse("%s is not a fingerprint: give %d to %d hex digits, as `docket dlq groups` prints them", quoted(f.fingerprint), leastFingerprint, ledger.FingerprintLength)
	}
	for _, name := range filterNames() {
		if flag := f.flags.Lookup(name); flag.Changed && flag.Value.String() == "" {
			return filter, misuse("--%s is empty", name)
		}
	}
	if f.kind != "" {
		kind, err := among("kind", strings.ToLower(f.kind), kinds())
		if err != nil {
			return filter, err
		}
		filter.Kind = envelope.Kind(kind)
	}
	for _, given := range f.states {
		state, err := among("state", strings.ToUpper(given), stateNames())
		if err != nil {
			return filter, err
		}
		filter.States = append(filter.States, ledger.State(state))
	}
	if f.flags.Changed("partition") {
		if f.partition < 0 {
			return filter, misuse("--partition must be 0 or more")
		}
		filter.Partition = &f.partition
	}
	var err error
	filter.From, filter.To, err = between(f.since, f.until, now)
	return filter, err
}

func among(what, given string, choices []string) (string, error) {
	for _, choice := range choices {
		if given == choice {
			return choice, nil
		}
	}
	return "", misuse("unknown %s %s%s (choose from %s)", what, quoted(given), cli.Meant(config.Nearest(given, choices)), strings.Join(choices, ", "))
}

// words are the flags that choose what a filter chooses, for a shell.
func words(f ledger.Filter) []string {
	var out []string
	add := func(flag, value string) {
		if value != "" {
			out = append(out, flag, shell(value))
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

// described is what a filter chooses, for people.
func described(f ledger.Filter) string {
	if w := words(f); len(w) > 0 {
		return plainAll(strings.Join(w, " "))
	}
	return "all"
}
