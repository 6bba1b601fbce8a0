package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/service/config"
)

// Opener opens the place of archives. It does not connect.
type Opener func(where string, s config.Settings) (archive.Shelf, error)

// archivesWithin limits the listing of archives. A storage that hangs must not take the time of the other checks.
const archivesWithin = 10 * time.Second

// archives lists the place of archives, if the settings name one. It reads no file.
func archives(ctx context.Context, s config.Settings, open Opener) []Result {
	if s.ArchiveTo == "" || open == nil {
		return nil
	}
	place, err := open(s.ArchiveTo, s)
	if err != nil {
		r := report{what: "archives"}
		r.add(Fail, fmt.Sprintf("%s cannot be opened: %v", s.ArchiveTo, err), storageHint(err))
		return r.all
	}
	if c, ok := place.(interface{ Close() }); ok {
		defer c.Close()
	}
	return inPlace(ctx, place)
}

// inPlace lists the archives of dead letters and then those of decisions, which have more files.
func inPlace(ctx context.Context, place archive.Shelf) []Result {
	r := report{what: "archives"}
	ctx, cancel := context.WithTimeout(ctx, archivesWithin)
	defer cancel()
	all, err := within(ctx, place.String()+" "+archive.LettersName, func() (*archive.Files, error) {
		if p, ok := place.(interface{ Present() error }); ok {
			if err := p.Present(); err != nil {
				return nil, err
			}
		}
		return archive.ListFiles(ctx, place, archive.LettersName, nil)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		r.add(Fail, fmt.Sprintf("%s did not answer in time, %v at most", place, archivesWithin), "check the storage, and the way there; answers about archived days wait for it, too")
		return r.all
	}
	if err == nil {
		var decisions *archive.Files
		decisions, err = within(ctx, place.String(), func() (*archive.Files, error) {
			return archive.ListFiles(ctx, place, historydb.NewArchives(nil).Name(), nil)
		})
		if errors.Is(err, context.DeadlineExceeded) {
			r.add(Warn, fmt.Sprintf("%s answers, and its files were not all listed in time, %v at most", place, archivesWithin), "docket archive list takes as long as it needs")
			return r.all
		}
		if err == nil {
			all.Join(decisions)
		}
	}
	if err != nil {
		r.add(Fail, fmt.Sprintf("%s cannot be listed: %v", place, err), storageHint(err))
		return r.all
	}
	r.unfinished(slices.DeleteFunc(slices.Sorted(maps.Keys(all.Unfinished)), func(name string) bool {
		_, ok := archive.DayOfName(name)
		return !ok
	}))
	r.alone(all.Alone)
	return r.results(counted(all.Archives(), "archive") + " in " + place.String())
}

// storageHint returns advice about an error of the place.
func storageHint(err error) string {
	if of, ok := errors.AsType[*archive.ShelfError](err); ok && of.Do != "" {
		return of.Do
	}
	return "check DOCKET_ARCHIVE_TO, and the rights of the user that runs Docket"
}

// unfinished tells of archives with a marker, by their names. Only their run knows whether it is at work.
func (r *report) unfinished(names []string) {
	if len(names) == 0 {
		return
	}
	day, _ := archive.DayOfName(names[0])
	again := "docket archive --day " + day.String() + " --keep"
	if strings.HasPrefix(names[0], archive.LettersName+"-") {
		again = "docket archive --dead-letters --day " + day.String()
	}
	if len(names) == 1 {
		r.add(Warn, archive.NotFinished(names[0]), "the next archive of that day by the same database removes what a killed run left: "+again)
		return
	}
	r.add(Warn, fmt.Sprintf("%d archives are not finished, like %s: runs are writing them, or were killed", len(names), names[0]),
		"the next archive of each day by the same database removes what a killed run left, like "+again+"; docket archive list names all")
}

// alone tells of files without manifest and marker, by the name of their archive.
func (r *report) alone(of map[string][]string) {
	if len(of) == 0 {
		return
	}
	files := 0
	for _, names := range of {
		files += len(names)
	}
	first := slices.Min(slices.Collect(maps.Keys(of)))
	detail := counted(files, "file") + " of archive " + first
	if len(of) > 1 {
		detail = fmt.Sprintf("%d files of %d archives, like %s,", files, len(of), first)
	}
	r.add(Warn, detail+" without a manifest: it was removed, or a run of an earlier release was killed", "bring the manifest back from a copy of the place; no run removes such files, and docket archive list names them")
}

// looking is a call to a place.
type looking struct {
	ended chan struct{}
	over  bool // it has ended
	late  bool // somebody waited for it as long as anybody does
}

// left are the looks that were left to themselves, one for each place.
var left = struct {
	sync.Mutex
	of map[string]*looking
}{of: map[string]*looking{}}

// leave leaves a look to itself, by the error of who waited for it.
func leave(of string, l *looking, err error) {
	left.Lock()
	defer left.Unlock()
	l.late = l.late || errors.Is(err, context.DeadlineExceeded)
	if !l.over && left.of[of] == nil {
		left.of[of] = l
	}
}

func (l *looking) end(of string) {
	left.Lock()
	defer left.Unlock()
	l.over = true
	close(l.ended)
	if left.of[of] == l {
		delete(left.of, of)
	}
}

// before returns the look that was left there, and whether it is late; nil: there is none.
func before(of string) (l *looking, late bool) {
	left.Lock()
	defer left.Unlock()
	l = left.of[of]
	return l, l != nil && l.late
}

// within returns what f returns. If ctx ends first, f is left to itself: a call to a file system that does not answer cannot be
// stopped. While it lasts, no other one looks at the same. A look whose asker went away may still be answered, so others wait for
// it.
func within[T any](ctx context.Context, of string, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	switch l, late := before(of); {
	case late:
		return none, context.DeadlineExceeded
	case l != nil:
		select {
		case <-l.ended:
		case <-ctx.Done():
			leave(of, l, ctx.Err())
			return none, ctx.Err()
		}
	}
	l := &looking{ended: make(chan struct{})}
	answered := make(chan answer, 1)
	go func() {
		defer l.end(of)
		value, err := f()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		leave(of, l, ctx.Err())
		return none, ctx.Err()
	}
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
