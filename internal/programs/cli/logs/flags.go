package logs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// decisionFlags are the flags that choose stored decisions.
type decisionFlags struct {
	since, until                                  string
	paths, services, verdicts, by, labels, values []string
	short                                         map[reader.Verdict]*bool
	flags                                         *pflag.FlagSet
}

// shorthands are the verdicts that have a flag of their own.
var shorthands = []reader.Verdict{reader.Allowed, reader.Denied, reader.Undefined, reader.Error}

func decisionFlagNames() []string {
	names := []string{"since", "until", "path", "service", "verdict", "requested-by", "label", "match"}
	for _, v := range shorthands {
		names = append(names, string(v))
	}
	return names
}

// declareRange declares the flags that stats have, too.
func (d *decisionFlags) declareRange(call frame.Call, c *cobra.Command, since string) {
	d.flags = c.Flags()
	standard := " (default: all that is stored)"
	if since != "" {
		standard = " (default " + since + ")"
	}
	d.flags.StringVar(&d.since, "since", since, "only decisions since `TIME`"+standard)
	d.flags.Lookup("since").DefValue = "" // the text says it
	d.flags.StringVar(&d.until, "until", "", "only decisions before `TIME` (default: no limit)")
	d.flags.StringArrayVar(&d.paths, "path", nil, "only this `PATH`, or all below it: 'authz/*'")
	d.flags.StringArrayVar(&d.services, "service", nil, "only this service: the `NAME` is the first part of the path")
	frame.MarkFilters(d.flags, decisionFlagNames())
	frame.Complete(c, map[string]frame.Completion{
		"since": frame.Fixed(frame.TimeWords), "until": frame.Fixed(frame.TimeWords),
		"path": lately(call, true), "service": lately(call, false),
	})
}

func (d *decisionFlags) declare(call frame.Call, c *cobra.Command) {
	d.declareRange(call, c, "")
	d.flags.StringSliceVar(&d.verdicts, "verdict", nil, "only this `VERDICT`: "+strings.Join(verdictNames(), ", "))
	d.short = map[reader.Verdict]*bool{}
	for _, v := range shorthands {
		d.short[v] = d.flags.Bool(string(v), false, "same as --verdict "+string(v))
	}
	d.flags.StringArrayVar(&d.by, "requested-by", nil, "only requests from `ADDRESS`, like 10.0.0.7 (any port) or 10.0.0.7:4711")
	d.flags.StringArrayVar(&d.labels, "label", nil, "only decisions with the OPA label `NAME=VALUE`")
	d.flags.StringArrayVar(&d.values, "match", nil, "only decisions with this value in the payload: `MATCH`")
	frame.MarkFilters(d.flags, decisionFlagNames())
	frame.Complete(c, map[string]frame.Completion{
		"verdict": frame.Fixed(verdictNames()), "requested-by": frame.Fixed(nil), "label": frame.Fixed(nil), "match": frame.Fixed([]string{"input:/", "result:/", "raw:/"}),
	})
}

func verdictNames() []string {
	var names []string
	for _, v := range reader.Verdicts() {
		names = append(names, string(v))
	}
	return names
}

// filter is what the flags choose.
func (d *decisionFlags) filter(now time.Time) (reader.Filter, error) {
	f := reader.Filter{Paths: d.paths, Services: d.services, RequestedBy: d.by}
	for _, name := range decisionFlagNames() {
		flag := d.flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		many, is := flag.Value.(pflag.SliceValue)
		if is && (len(many.GetSlice()) == 0 || slices.Contains(many.GetSlice(), "")) || !is && flag.Value.String() == "" {
			return f, frame.Misuse("--%s is empty", name)
		}
	}
	if err := d.legible(); err != nil {
		return f, err
	}
	for _, given := range d.verdicts {
		v, err := reader.ParseVerdict(given)
		if err != nil {
			return f, frame.Misuse("--verdict %s: %v", term.Quoted(given), err)
		}
		f.Verdicts = append(f.Verdicts, v)
	}
	for _, v := range shorthands {
		if on := d.short[v]; on != nil && *on && !slices.Contains(f.Verdicts, v) {
			f.Verdicts = append(f.Verdicts, v)
		}
	}
	for _, given := range d.labels {
		name, value, err := reader.ParseLabel(given)
		if err != nil {
			return f, frame.Misuse("--label %s: %v", term.Quoted(given), err)
		}
		if was, twice := f.Labels[name]; twice && was != value {
			return f, frame.Misuse("a decision has the label %s only once", term.Quoted(name))
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	for _, given := range d.values {
		m, err := reader.ParseMatch(given)
		if err != nil {
			return f, frame.Misuse("--match %s: %v", term.Quoted(given), err)
		}
		f.Matches = append(f.Matches, m)
	}
	var err error
	f.Since, f.Until, err = frame.Between(d.since, d.until, now)
	return f, err
}

// legible refuses text that no column can hold.
func (d *decisionFlags) legible() error {
	for name, values := range map[string][]string{"path": d.paths, "service": d.services, "requested-by": d.by} {
		for _, value := range values {
			if !utf8.ValidString(value) {
				return frame.Misuse("--%s %s is not UTF-8", name, term.Quoted(value))
			}
		}
	}
	return nil
}

// pathHint suggests the right form of a path that is written as in Rego, in a URL, or as a pattern of shells.
func pathHint(paths []string) string {
	for _, given := range paths {
		path := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(given, "/"), "v1/"), "data/")
		if rest, rego := strings.CutPrefix(given, "data."); rego && !strings.Contains(rest, "/") {
			path = strings.ReplaceAll(rest, ".", "/")
		}
		switch {
		case path == "" || strings.Trim(path, "/*") == "":
			return "for all paths, leave out --path"
		case strings.HasSuffix(path, "/"):
			path += "*"
		}
		if path != given {
			return "did you mean --path " + term.ShellWord(path) + "?"
		}
	}
	return ""
}

// decisionWords are the flags of a filter, for a shell.
func decisionWords(f reader.Filter) []string {
	var out []string
	add := func(flag string, values ...string) {
		for _, value := range values {
			out = append(out, flag, term.ShellWord(value))
		}
	}
	if !f.Since.IsZero() {
		add("--since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		add("--until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	add("--path", f.Paths...)
	add("--service", f.Services...)
	for _, v := range f.Verdicts {
		if slices.Contains(shorthands, v) {
			out = append(out, "--"+string(v))
		} else {
			add("--verdict", string(v))
		}
	}
	add("--requested-by", f.RequestedBy...)
	var labels []string
	for name, value := range f.Labels {
		labels = append(labels, name+"="+value)
	}
	slices.Sort(labels)
	add("--label", labels...)
	for _, m := range f.Matches {
		add("--match", m.Text())
	}
	return out
}

// lately suggests paths or services of the last day, those with the most decisions first.
func lately(call frame.Call, paths bool) frame.Completion {
	return call.Suggest(func(ctx context.Context, _ string) ([]string, error) {
		const day = 24 * time.Hour
		from := call.Now().Truncate(time.Hour).Add(-day)
		lines, err := call.Sys.Decisions.Stats(ctx, reader.StatsQuery{Since: from, Step: time.Hour, ByPath: paths})
		err = new(reader.Parts).Pass(err) // names of a part are better than none
		var out []string
		for _, r := range rated(lines) {
			if r.name != "" && r.name != reader.OtherPaths {
				out = append(out, fmt.Sprintf("%s\t%s", r.name, term.Counted(r.total(), "decision")))
			}
		}
		return out, err
	})
}
