// Command dashboard writes deploy/grafana/docket.json, the Grafana dashboard of Docket: go run ./deploy/check/dashboard.
//
// With -queries it prints the queries of the panels instead, with a value for every variable of Grafana. Scripts put them to
// a real Prometheus. With -rules it prints them as recording rules, which promtool check rules parses.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("dashboard", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "deploy/grafana/docket.json", "`file` to write")
	queries := flags.Bool("queries", false, "print each query: panel, ref, expression and quiet (or nothing), separated by tabs")
	rules := flags.Bool("rules", false, "print each query as a recording rule")
	rate := flags.String("rate", "1m", "value of $__rate_interval, with -queries and -rules")
	span := flags.String("range", "15m", "value of $__range, with -queries and -rules")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	values := concrete(*rate, *span)
	var err error
	switch {
	case *queries:
		err = printQueries(stdout, board(), values)
	case *rules:
		err = printRules(stdout, board(), values)
	default:
		var text []byte
		if text, err = render(board()); err == nil {
			err = os.WriteFile(*out, text, 0o644) //nolint:gosec // everybody may read it
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "dashboard:", err)
		return 1
	}
	return 0
}
