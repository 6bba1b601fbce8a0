package archive

import (
	"errors"
	"fmt"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/programs/cli/term"
)

// broken is the error of archives that cannot be read, nil if each can.
func broken(v *inventory.Inventory) (err error) {
	for _, b := range v.Broken {
		err = errors.Join(err, b)
	}
	return err
}

// unknown says that it is not known whether archives are missing, if it is not.
func (b *base) unknown(v *inventory.Inventory) {
	if v.LeftUnknown != "" {
		b.Tell("it is not known whether archives are missing: %s\n", v.LeftUnknown)
	}
}

// missing prints the days that lack archives, and reports whether there are some. A day without any archive is told with
// others.
func (b *base) missing(absent []*archive.AbsentError) (some bool) {
	var gone []*archive.AbsentError
	for _, a := range absent {
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
	return len(absent) > 0
}

// lacks prints that an archive lacks files, and reports whether it does.
func (b *base) lacks(name string, files []string) bool {
	if len(files) == 0 {
		return false
	}
	b.Failed(&archive.BrokenError{Archive: name, Problem: fmt.Sprintf("%s is missing", files[0]) + more(len(files)-1)})
	return true
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
func (b *base) alone(all []inventory.Alone) {
	for _, a := range all {
		files := term.Counted(int64(a.Files), "file")
		if a.Unfinished {
			b.Tell("archive %s is not finished, and has %s: a run is writing it, or was killed; the next run of the day removes what a killed one left\n", a.Archive, files)
		} else {
			b.Tell("%s of archive %s without a manifest: it was removed, or a run of an earlier release was killed; no run removes them\n", files, a.Archive)
		}
	}
}
