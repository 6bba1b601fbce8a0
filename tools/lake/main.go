// Command lake asks engines that nobody here wrote about an archive, and compares their answers with Docket's.
//
//	lake -python PYTHON -engines DIR -questions DIR -page docs/lake.md -work DIR -n 1000000
//
// It writes an archive with Docket's own writer, from real decisions with new identities. DuckDB, pyarrow and Spark
// then answer the questions of an auditor, and so does Docket's reader. It ends with 1 if two answers differ in
// anything. With -plants it also asks about archives with a planted error, which each engine has to notice. build/lake
// prepares the engines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"docket/internal/history/archive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "lake: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	asker  asker
	rows   int64
	days   int
	seed   uint64
	plants bool
	single bool
	out    string
}

// run writes, asks and compares.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("lake", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.asker.python, "python", "", "Python with the engines")
	flags.StringVar(&o.asker.engines, "engines", "", "folder with ask.py and a module for each engine")
	flags.StringVar(&o.asker.questions, "questions", "", "folder with the questions as SQL")
	flags.StringVar(&o.asker.page, "page", "", "page with examples for the engines, which run, too")
	flags.StringVar(&o.asker.work, "work", "", "folder for the archive and temporary files")
	flags.Int64Var(&o.rows, "n", 1_000_000, "decisions to write")
	flags.IntVar(&o.days, "days", 0, "days that they are spread over; 0: one for each 20,000 decisions, 20 to 100")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the decisions")
	flags.BoolVar(&o.plants, "plants", false, "also ask about archives with a planted error")
	flags.BoolVar(&o.single, "single", false, "ask Docket alone, about single decisions")
	flags.StringVar(&o.out, "out", "", "file for the table; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.asker.log = log
	if o.days == 0 {
		o.days = int(min(max(o.rows/20_000, 20), 100))
	}
	return o.run(ctx, out, log)
}

// firstDay is late in a month, so that 20 days are in two months.
var firstDay = archive.DayOf(time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC))

func (o *options) run(ctx context.Context, out, log io.Writer) error {
	all, err := templates()
	if err != nil {
		return err
	}
	rows := decisions{seed: o.seed, first: firstDay, days: o.days, rows: o.rows, templates: all}
	whole, err := write(ctx, filepath.Join(o.asker.work, "archive"), &rows)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, "lake:", whole)
	archives := []string{whole.dir}
	if o.plants {
		for _, kind := range plants {
			w, err := writePlanted(ctx, filepath.Join(o.asker.work, kind), whole, rows, kind)
			if err != nil {
				return err
			}
			archives = append(archives, w.dir)
		}
	}
	picks, err := pick(&rows)
	if err != nil {
		return err
	}
	costs, err := askCold(ctx, whole.dir, picks)
	if err != nil {
		return fmt.Errorf("ask about single decisions: %w", err)
	}
	fmt.Fprint(out, coldPage(whole, costs)+"\n")
	if o.single {
		return o.save(coldPage(whole, costs))
	}
	docket, err := askDocket(ctx, whole.dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "lake: Docket answered in %.1f s\n", docket.took.Seconds())
	asked := []*answers{docket}
	var failed []error
	for _, engine := range engines {
		start := time.Now()
		said, err := o.asker.ask(ctx, engine, archives...)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // the answers of the others count
			fmt.Fprintf(log, "lake: %s did not answer: %v\n", engine, err)
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(log, "lake: %s answered in %.1f s, its start included\n", said[0].Engine, time.Since(start).Seconds())
		asked = append(asked, said[0])
		failed = append(failed, differences(docket, said[0]))
		for i, kind := range plants[:len(said)-1] {
			failed = append(failed, noticed(docket, said[i+1], kind))
		}
	}
	page := pageOf(whole, asked)
	fmt.Fprint(out, page)
	failed = append(failed, o.save(coldPage(whole, costs)+"\n"+page))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if o.plants {
		fmt.Fprintf(out, "every engine noticed a missing row and an altered verdict\n")
	}
	return nil
}

// save writes the page, if there is to be one.
func (o *options) save(page string) error {
	if o.out == "" {
		return nil
	}
	return os.WriteFile(o.out, []byte(page), 0o600)
}

// noticed returns an error unless the answers about a planted archive differ.
func noticed(want, got *answers, kind string) error {
	if differences(want, got) == nil {
		return fmt.Errorf("%s gives the answers of the whole archive, though a row is %s", got.Engine, kind)
	}
	return nil
}
