package archive

import (
	"context"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// verify is docket archive verify.
type verify struct {
	base
	day string
	all bool
}

func verifyCommand(call frame.Call) *cobra.Command {
	v := &verify{base: base{Call: call}}
	c := &cobra.Command{
		Use: "verify {--day DAY | --all} [flags]", Short: "Read archives and check them against their manifests", DisableFlagsInUseLine: true,
		Long: "Read archives and check them against their manifests: size and SHA-256 of each file, count and hash of the rows.\n" +
			"From a bucket this downloads them. Nothing is changed. With --server, the desk reads its own archive, one\n" +
			"after another. That needs the role operator.",
		Example: "  docket archive verify --day 2026-08-01\n  docket archive verify --all --from /srv/docket-archive", Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&v.day, "day", "", "only this `DAY`: YYYY-MM-DD, in UTC")
	c.Flags().BoolVar(&v.all, "all", false, "all days")
	c.Flags().StringVar(&v.place, "from", "", whereText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "each archive is as its manifest says", "an archive is missing or broken, or the command failed")
	c.RunE = v.Run(v.check)
	return c
}

// check looks at the flags.
func (v *verify) check([]string) (frame.Work, error) {
	if (v.day == "") != v.all {
		return nil, frame.Misuse("give --day or --all, one of them")
	}
	var day *archive.Day
	if v.day != "" {
		d, err := oneDay(v.day)
		if err != nil {
			return nil, err
		}
		day = &d
	}
	return func(ctx context.Context) error { return v.verified(ctx, day) }, v.locateOrDesk("--from")
}

func (v *verify) verified(ctx context.Context, day *archive.Day) error {
	there, prove, let, err := v.look(ctx, day)
	if err != nil {
		return err
	}
	defer let()
	v.unknown(there)
	wrong := broken(there)
	if wrong != nil {
		v.Failed(wrong)
	}
	missing := v.missing(there.Absent) // files that are missing are told below
	if wrong == nil && len(there.Archives) == 0 && !missing {
		return archive.ErrNone
	}
	v.alone(there.Alone)
	bad := wrong != nil || missing
	var told []jsonArchive
	for i, a := range there.Archives {
		err := prove(ctx, i)
		if err != nil && ctx.Err() != nil {
			return err
		}
		ok := err == nil
		j := archiveOf(a)
		if j.Verified = &ok; !ok {
			bad, j.Error = true, err.Error()
			v.Failed(err)
		} else if !v.AsJSON {
			v.Say("%s: ok, %s, %s\n", a.Name, term.Counted(a.Rows, "row"), sized(a.Bytes))
		}
		told = append(told, j)
	}
	if there.More > 0 {
		bad = true
		v.Tell("%s of the desk is missing here: run docket archive verify on its host to see all\n", term.Counted(int64(there.More), "line"))
	}
	if v.AsJSON {
		v.Print(frame.ListOf(told, "", func(j jsonArchive) jsonArchive { return j }))
	}
	if bad {
		return frame.Exit(1)
	}
	return nil
}

// look returns what there is, of a day or of all, and how one of these archives is read: by the desk, if one is chosen, or
// here. let closes it.
func (v *verify) look(ctx context.Context, day *archive.Day) (there *inventory.Inventory, prove func(ctx context.Context, i int) error, let func(), err error) {
	if v.Sys.Desk != nil {
		if there, err = v.Sys.Inventory(ctx); err != nil {
			return nil, nil, nil, err
		}
		if day != nil {
			there = there.OfDay(*day)
		}
		return there, func(ctx context.Context, i int) error { return v.Sys.Prove(ctx, there.Archives[i].Name) }, func() {}, nil
	}
	shelf, let, err := v.shelf()
	if err != nil {
		return nil, nil, nil, err
	}
	there, err = inventory.Source{Shelf: shelf, Table: v.Sys.Days, Left: v.Sys.Left, Letters: v.Sys.Noted, Day: day, Told: error.Error}.Take(ctx)
	if err != nil {
		let()
		return nil, nil, nil, err
	}
	return there, func(ctx context.Context, i int) error {
		return archive.ProveWithin(ctx, shelf, there.Manifests[i], archive.MostLine(int64(v.Settings.MaxRecordBytes)))
	}, let, nil
}
