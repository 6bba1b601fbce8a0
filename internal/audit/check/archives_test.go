package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/shelf"
	"docket/internal/service/config"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

func told(all []Result) (lines []string) {
	for _, r := range all {
		lines = append(lines, fmt.Sprintf("%s %s: %s; %s", r.Level, r.What, r.Detail, r.Hint))
	}
	return lines
}

const (
	begun   = "decision_logs-2026-08-03-001-3f9a2c-00000000"
	later   = "decision_logs-2026-08-04-001-3f9a2c-00000000"
	letters = "dead_letters-2026-08-03-001-3f9a2c-00000000"
)

func TestArchives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string // beside one whole archive
		want  []string
	}{
		"whole":            {nil, []string{"ok archives: 1 archive in PLACE; "}},
		"one is whole now": {[]string{letters + ".manifest.json", letters + ".started"}, []string{"ok archives: 2 archives in PLACE; "}},
		"not finished": {[]string{begun + ".started", "decision_logs/day=2026-08-03/" + begun + ".0001.parquet"}, []string{
			"warn archives: archive " + begun + " is not finished: a run is writing it, or was killed; the next archive of that day by the same database removes what a killed run left: docket archive --day 2026-08-03 --keep"}},
		"dead letters not finished": {[]string{letters + ".started"}, []string{
			"warn archives: archive " + letters + " is not finished: a run is writing it, or was killed; the next archive of that day by the same database removes what a killed run left: docket archive --dead-letters --day 2026-08-03"}},
		"several not finished": {[]string{later + ".started", begun + ".started"}, []string{
			"warn archives: 2 archives are not finished, like " + begun + ": runs are writing them, or were killed; the next archive of each day by the same database removes what a killed run left, like docket archive --day 2026-08-03 --keep; docket archive list names all"}},
		"a file alone": {[]string{letters + ".0001.jsonl.gz"}, []string{
			"warn archives: 1 file of archive " + letters + " without a manifest: it was removed, or a run of an earlier release was killed; bring the manifest back"}},
		"files alone, and one not finished": {[]string{letters + ".0001.jsonl.gz", letters + ".0002.jsonl.gz", "decision_logs/day=2026-08-04/" + later + ".0001.parquet", begun + ".started"}, []string{
			"warn archives: archive " + begun + " is not finished", "warn archives: 3 files of 2 archives, like " + letters + ", without a manifest: it was removed"}},
		"a marker of no archive": {[]string{"decision_logs-x.started"}, []string{"ok archives: 1 archive in PLACE; "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			place := archive.Dir(dir)
			if _, err := archivetest.Write(t.Context(), place, 0, readertest.Decision(1, time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC))); err != nil {
				t.Fatal(err)
			}
			for _, file := range c.files {
				if err := place.Put(t.Context(), file, strings.NewReader("x")); err != nil {
					t.Fatal(err)
				}
			}
			got := told(archives(t.Context(), config.Settings{ArchiveTo: dir}, shelf.Open))
			if !slices.EqualFunc(got, c.want, func(got, want string) bool {
				return strings.HasPrefix(got, strings.ReplaceAll(want, "PLACE", dir))
			}) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestArchives_NoSuchPlace: a place that cannot be listed fails, with advice and without a secret. Settings without a place give no
// line.
func TestArchives_NoSuchPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		open Opener
		want string
	}{
		"not set":          {nil, shelf.Open, ""},
		"not read by it":   {[]string{"DOCKET_ARCHIVE_TO=" + dir}, nil, ""},
		"no directory":     {[]string{"DOCKET_ARCHIVE_TO=" + dir + "/none"}, shelf.Open, "fail archives: " + dir + "/none cannot be listed: the directory does not exist; mount it; or make it, if nothing was archived yet"},
		"a file":           {[]string{"DOCKET_ARCHIVE_TO=" + file}, shelf.Open, "fail archives: " + file + " cannot be listed: open " + file},
		"nobody answers":   {[]string{"DOCKET_ARCHIVE_TO=s3://bucket/x"}, shelf.Open, "fail archives: s3://bucket/x/ cannot be listed: the object storage cannot be reached, or the connection was lost: no connection; check DOCKET_ARCHIVE_S3_ENDPOINT"},
		"it is not opened": {[]string{"DOCKET_ARCHIVE_TO=" + dir}, func(string, config.Settings) (archive.Shelf, error) { return nil, errors.New("no") }, "fail archives: " + dir + " cannot be opened: no; check DOCKET_ARCHIVE_TO"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := config.Load(config.Desk, append([]string{
				"DOCKET_DATABASE_URL=postgres://u:" + planted + "@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1",
				"DOCKET_ARCHIVE_S3_ENDPOINT=http://127.0.0.1:1", "DOCKET_ARCHIVE_S3_ACCESS_KEY=key", "DOCKET_ARCHIVE_S3_SECRET_KEY=" + planted,
			}, c.env...))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(told(archives(t.Context(), s, c.open)), "\n")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || strings.Contains(got, planted) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// stuck is a place that does not answer about the files of one table. With deaf it does not notice that nobody waits.
type stuck struct {
	archive.Shelf
	table string
	deaf  chan struct{}
	looks *atomic.Int32 // nil: nobody counts them
}

func (s stuck) List(ctx context.Context, prefix string) ([]string, error) {
	if strings.HasPrefix(prefix, s.table) {
		if s.looks != nil {
			s.looks.Add(1)
		}
		if s.deaf != nil {
			<-s.deaf
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Shelf.List(ctx, prefix)
}

// TestArchives_HangingPlace: a storage that does not answer takes ten seconds of the minute that all checks have.
func TestArchives_HangingPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for table, want := range map[string]string{
		archive.LettersName: "fail archives: " + dir + " did not answer in time, 10s at most",
		archivetest.Table:   "warn archives: " + dir + " answers, and its files were not all listed in time, 10s at most; docket archive list",
	} {
		for _, deaf := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				place := stuck{Shelf: archive.Dir(dir), table: table}
				if deaf {
					place.deaf = make(chan struct{})
					defer close(place.deaf)
				}
				began := time.Now()
				got := told(inPlace(t.Context(), place))
				if took := time.Since(began); len(got) != 1 || !strings.HasPrefix(got[0], want) || took != archivesWithin {
					t.Errorf("%s, deaf %t: after %v %q, want %s", table, deaf, took, got, want)
				}
			})
		}
	}
}

// TestArchives_DeafPlaceKeepsOneLook: a call to a file system that does not answer cannot be stopped, so no second one is made.
func TestArchives_DeafPlaceKeepsOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := stuck{Shelf: archive.Dir(t.TempDir()), table: archive.LettersName, deaf: make(chan struct{}), looks: &atomic.Int32{}}
		for i := range 20 {
			began := time.Now()
			got := told(inPlace(t.Context(), place))
			if len(got) != 1 || !strings.Contains(got[0], "did not answer in time") || i > 0 && time.Since(began) > 0 {
				t.Errorf("after %v %q", time.Since(began), got)
			}
		}
		if n := place.looks.Load(); n != 1 {
			t.Errorf("%d looks wait", n)
		}
		close(place.deaf)
		synctest.Wait()
		if got := told(inPlace(t.Context(), place.Shelf)); len(got) != 1 || strings.Contains(got[0], "did not answer") {
			t.Errorf("it answers again: %q", got)
		}
	})
}

// slow is a place that lists after a while, whatever becomes of who asked.
type slow struct{ archive.Shelf }

func (s slow) List(ctx context.Context, prefix string) ([]string, error) {
	time.Sleep(archivesWithin / 50)
	return s.Shelf.List(context.WithoutCancel(ctx), prefix)
}

// TestArchives_AskerGoesAway: a look that nobody waits for any more does not speak against a place that is well.
func TestArchives_AskerGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := slow{archive.Dir(t.TempDir())}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(archivesWithin/100, cancel)
		_ = told(inPlace(ctx, place))
		if got := told(inPlace(t.Context(), place)); len(got) != 1 || !strings.HasPrefix(got[0], "ok ") {
			t.Errorf("%q", got)
		}
		// If it never ends, others wait for it as long as anybody does, and then no more.
		deaf := stuck{Shelf: archive.Dir(t.TempDir()), table: archive.LettersName, deaf: make(chan struct{}), looks: &atomic.Int32{}}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_ = told(inPlace(ctx, deaf))
		for i := range 3 {
			began := time.Now()
			got := told(inPlace(t.Context(), deaf))
			if took := time.Since(began); len(got) != 1 || !strings.Contains(got[0], "did not answer in time") || (took > 0) != (i == 0) {
				t.Errorf("after %v %q", took, got)
			}
		}
		if n := deaf.looks.Load(); n != 1 {
			t.Errorf("%d looks wait", n)
		}
		close(deaf.deaf)
		synctest.Wait()
	})
}

// TestSeen_ArchivesOfShards: each shard has a place of its own, and all are looked at after the other checks.
func TestSeen_ArchivesOfShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := config.Load(config.Desk, []string{
		"DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_ARCHIVE_TO=" + dir, "DOCKET_SHARDS=a=0-5,b=6-11",
		"DOCKET_SHARD_URLS=a=postgres://u@127.0.0.1:1/a b=postgres://u@127.0.0.1:1/b",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := told(Seen(t.Context(), s, shelf.Open))
	want := []string{"fail shard a, archives: " + dir + "/a cannot be listed", "ok shard b, archives: 0 archives in " + dir + "/b"}
	if n := len(got); n < 4 || !strings.HasPrefix(got[n-2], want[0]) || !strings.HasPrefix(got[n-1], want[1]) {
		t.Errorf("got %q, want at the end %q", got, want)
	}
}

// TestSeen_NoTimeLeft: checks that took all their time do not make a storage that answers look like one that does not.
func TestSeen_NoTimeLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := config.Load(config.Desk, []string{"DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_DATABASE_URL=postgres://u@127.0.0.1:1/a", "DOCKET_ARCHIVE_TO=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	got := told(seen(t.Context(), s, shelf.Open, time.Nanosecond))
	if want := "ok archives: 0 archives in " + dir; !strings.HasPrefix(got[len(got)-1], want) {
		t.Errorf("got %q, want %q at the end", got, want)
	}
}
