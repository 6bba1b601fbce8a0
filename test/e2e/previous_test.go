//go:build integration

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// pinned names the commit of the release before this one.
	pinned = "../../test/servers/previous-release"
	// sources are its sources, as git archives them: a clone need not have its history.
	sources = pinned + ".tar.gz"
)

// The programs of two releases, as [system.start] takes their names.
const (
	current = ""
	former  = "former/"
)

// theFormer are the programs of the previous release, built once for all tests.
var theFormer struct {
	once    sync.Once
	version string
	err     error
}

// previous sees to it that the programs of the previous release are under former, and returns the version that they show.
// Without them an upgrade is not tested, so their absence is a failure.
func previous(t *testing.T) (version string) {
	t.Helper()
	theFormer.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
		defer cancel()
		theFormer.version, theFormer.err = fetchFormer(ctx)
	})
	if theFormer.err != nil {
		t.Fatalf("the previous release is not there to upgrade from: %v", theFormer.err)
	}
	return theFormer.version
}

func fetchFormer(ctx context.Context) (version string, err error) {
	commit, err := commitOf(pinned)
	if err != nil {
		return "", err
	}
	cache := os.Getenv("DOCKET_CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(dir, "docket")
	}
	version = "previous-" + commit[:12]
	dir := filepath.Join(cache, "previous", commit+"-"+runtime.Version())
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		err = buildFormer(ctx, commit, version, dir)
		if err != nil {
			return "", err
		}
	}
	return version, os.Symlink(dir, filepath.Join(bin, former))
}

// commitOf reads the one line of a file that is not a comment.
func commitOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	if len(found) != 1 || len(found[0]) != 40 {
		return "", fmt.Errorf("%s has to name one commit by its whole hash", filepath.Base(file))
	}
	return found[0], nil
}

// buildFormer builds the programs of a commit into dir, which is whole or not there: as the present ones are built, so
// that what both depend on is compiled once.
func buildFormer(ctx context.Context, commit, version, dir string) error {
	archive, err := filepath.Abs(sources)
	if err != nil {
		return err
	}
	if err := archiveOf(archive, commit); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "docket-previous-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	source := filepath.Join(work, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		return err
	}
	if _, err := run(ctx, source, "tar", "-xzf", archive); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	built, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built) }() // nothing is left of it after the rename
	if _, err := run(ctx, source, "go", "build", "-buildvcs=false", "-ldflags", "-s -w -X docket/internal/buildinfo.Version="+version,
		"-o", built+"/", "./cmd/consumer", "./cmd/parking-replayer"); err != nil {
		return err
	}
	if err := os.Rename(built, dir); err != nil && !errors.Is(err, os.ErrExist) { // another run may have been first
		return err
	}
	return nil
}

// archiveOf refuses an archive that is not of that commit, by the note that git leaves in one.
func archiveOf(archive, commit string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	inflated, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("inflate %s: %w", filepath.Base(archive), err)
	}
	first, err := tar.NewReader(inflated).Next()
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(archive), err)
	}
	if of := first.PAXRecords["comment"]; first.Typeflag != tar.TypeXGlobalHeader || of != commit {
		return fmt.Errorf("%s is of commit %q, and test/servers/previous-release names %s: make it again", filepath.Base(archive), of, commit)
	}
	return nil
}

// run runs a command in a folder to its end and returns what it printed.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

func TestUpgrade_FormerReleaseIsTheNamedOne(t *testing.T) {
	t.Parallel()
	commit, err := commitOf(pinned)
	if err != nil {
		t.Fatal(err)
	}
	if err := archiveOf(sources, commit); err != nil {
		t.Error(err)
	}
	if err := archiveOf(sources, strings.Repeat("0", 40)); err == nil {
		t.Error("an archive of another commit was taken")
	}
}
