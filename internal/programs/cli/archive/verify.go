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
			"From a bucket this downloads them. Nothing is changed.",
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
	return func(ctx context.Context) error { return v.verified(ctx, day) }, v.locate("--from")
}

func (v *verify) verified(ctx context.Context, day *archive.Day) error {
	shelf, let, err := v.shelf()
	if err != nil {
		return err
	}
	defer let()
	there, err := inventory.Source{Shelf: shelf, Table: v.Sys.Days, Left: v.Sys.Left, Day: day, Told: error.Error}.Take(ctx)
	if err != nil {
		return err
	}
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
	for i, m := range there.Manifests {
		err := archive.ProveWithin(ctx, shelf, m, archive.MostLine(int64(v.Settings.MaxRecordBytes)))
		ok := err == nil
		j := archiveOf(there.Archives[i])
		if j.Verified = &ok; !ok {
			bad, j.Error = true, err.Error()
			v.Failed(err)
		} else if !v.AsJSON {
			v.Say("%s: ok, %s, %s\n", m.Name(), term.Counted(m.Rows, "row"), sized(m.Bytes()))
		}
		told = append(told, j)
	}
	if v.AsJSON {
		v.Print(frame.ListOf(told, "", func(j jsonArchive) jsonArchive { return j }))
	}
	if bad {
		return frame.Exit(1)
	}
	return nil
}
