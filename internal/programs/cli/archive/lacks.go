package archive

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/term"
)

// lacks is what a place of archives lacks.
type lacks struct {
	absent []*archive.AbsentError // of days that left the table
	files  *archive.Files
}

// lacking compares archives with the days that left the table, and with the files that are there. day nil: all days. broken is the
// error of [base.archives].
func (b *base) lacking(ctx context.Context, shelf archive.Shelf, left []archive.Left, all []*archive.Manifest, broken error, day *archive.Day) (l lacks, err error) {
	if day != nil {
		left = slices.DeleteFunc(slices.Clone(left), func(l archive.Left) bool { return l.Day != *day })
	}
	decisions := slices.DeleteFunc(slices.Clone(all), func(m *archive.Manifest) bool { return m.Table == archive.LettersName })
	l.absent = archive.Absent(left, decisions, archive.BrokenNames(broken)...)
	if l.files, err = archive.ListFiles(ctx, shelf, b.Sys.Days.Name(), day); err != nil {
		return l, err
	}
	more, err := archive.ListFiles(ctx, shelf, archive.LettersName, day)
	if err != nil {
		return l, err
	}
	l.files.Join(more)
	return l, nil
}

// left returns the days that left the table. If they cannot be asked for, it says so, and returns none. Ask it before the shelf,
// because a day leaves the table after its archive was written.
func (b *base) left(ctx context.Context) []archive.Left {
	if b.Sys.Left == nil {
		return nil
	}
	left, err := b.Sys.Left(ctx)
	if err != nil {
		b.Tell("it is not known whether archives are missing: %v\n", err)
		return nil
	}
	return left
}

// missing prints what is missing, and reports whether something is. A day without any archive is told with others.
func (b *base) missing(l lacks, all []*archive.Manifest) (some bool) {
	var gone []*archive.AbsentError
	for _, a := range l.absent {
		if len(a.Archives) > 0 {
			b.Failed(a)
		} else {
			gone = append(gone, a)
		}
	}
	switch n := len(gone); {
	case n == 1:
		b.Failed(gone[0])
	case n > 1:
		b.Failed(fmt.Errorf("%d days from %s to %s left the table, and no archives have them: these were removed, or are elsewhere", n, gone[0].Day, gone[n-1].Day))
	}
	files := false
	for _, m := range all {
		if names := l.files.Lacks(m); len(names) > 0 {
			files = true
			b.Failed(&archive.BrokenError{Archive: m.Name(), Problem: fmt.Sprintf("%s is missing", names[0]) + more(len(names)-1)})
		}
	}
	return len(l.absent) > 0 || files
}

func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and another file"
	}
	return fmt.Sprintf(", and %d other files", n)
}

// alone tells of files without a manifest.
func (b *base) alone(l lacks) {
	for _, name := range slices.Sorted(maps.Keys(l.files.Unfinished)) {
		b.Tell("archive %s is not finished, and has %s: a run is writing it, or was killed; the next run of the day removes what a killed one left\n", name, term.Counted(int64(len(l.files.Unfinished[name])), "file"))
	}
	for _, name := range slices.Sorted(maps.Keys(l.files.Alone)) {
		b.Tell("%s of archive %s without a manifest: it was removed, or a run of an earlier release was killed; no run removes them\n", term.Counted(int64(len(l.files.Alone[name])), "file"), name)
	}
}
