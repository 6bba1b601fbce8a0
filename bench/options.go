package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Sections are the parts of a run, in their order.
func Sections() []string {
	return []string{"drain", "again", "bad", "replay", "latency", "outage", "scale", "memory", "growth", "desk", "states", "limit", "collect", "against", "peers", "budget", "profile"}
}

// Peers are the workers of others that Docket is compared with, by their folder in peers.
func Peers() []string { return []string{"spring", "debezium", "redpanda", "telegraf", "flink"} }

// Options say what is measured and how often.
type Options struct {
	N      int             // decisions in the topic
	Rounds int             // the page has their median
	Repeat int             // times that a run is made again because of other work on the machine
	Seed   uint64          // of the decisions
	Only   map[string]bool // sections
	Long   bool            // memory over ten times N
	Growth bool            // a table with many rows in it
	Filler int             // how many, before anything is drained into it
	Peers  []string        // that are measured in the section of this name
	// Against is a consumer of another commit, with which this one is compared in the section of this name; empty: there is none.
	Against string
	// Profile is the file that the section of this name writes: a CPU profile of the worker; empty: there is none.
	Profile string
	Out     string // file for the page; none where empty
}

// Does says whether a section is wanted.
func (o Options) Does(section string) bool { return o.Only[section] }

// ParseOptions reads the options by their names in the environment; one that is empty has its default. An error names
// all that is wrong.
func ParseOptions(get func(name string) string) (Options, error) {
	var wrong []error
	number := func(name string, otherwise, least, most int) int {
		text := get(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			wrong = append(wrong, fmt.Errorf("%s is %q: want a number from %d to %d", name, text, least, most))
		}
		return n
	}
	flag := func(name string) bool { return number(name, 0, 0, 1) == 1 }
	o := Options{
		N: number("N", 1_000_000, 1000, 100_000_000), Rounds: number("ROUNDS", 5, 1, 1000), Repeat: number("REPEAT", 2, 0, 100),
		Seed: uint64(number("SEED", 1, 0, 1<<62)), Long: flag("LONG"), Growth: flag("GROWTH"),
		Filler: number("FILLER", 20_000_000, 1, 1<<40), Out: get("OUT"), Against: get("AGAINST"), Profile: get("PROFILE"),
	}
	only, err := sections(get("ONLY"), map[string]bool{"growth": o.Growth, "peers": flag("PEERS"), "against": o.Against != "", "budget": false, "profile": o.Profile != ""})
	o.Only = only
	if o.Does("against") && o.Against == "" {
		err = errors.Join(err, errors.New("ONLY has against, and AGAINST names no commit"))
	}
	if o.Does("profile") && o.Profile == "" {
		err = errors.Join(err, errors.New("ONLY has profile, and PROFILE names no file"))
	}
	peers, unknown := named("PEER", get("PEER"), Peers())
	o.Peers = peers
	return o, errors.Join(append(wrong, err, unknown)...)
}

// sections are those that were named by comma; where none was, all but those that have to be asked for and were not.
func sections(text string, asked map[string]bool) (map[string]bool, error) {
	chosen := map[string]bool{}
	if text == "" {
		for _, name := range Sections() {
			wanted, optional := asked[name]
			chosen[name] = wanted || !optional
		}
		return chosen, nil
	}
	names, err := named("ONLY", text, Sections())
	for _, name := range names {
		chosen[name] = true
	}
	return chosen, err
}

// named are those that a variable names by comma, in the order of all; where it is empty, all.
func named(variable, text string, all []string) (chosen []string, err error) {
	if text == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%s has %q: there are %s", variable, name, strings.Join(all, ", "))
		}
		wanted[name] = true
	}
	for _, name := range all {
		if wanted[name] {
			chosen = append(chosen, name)
		}
	}
	return chosen, nil
}
