package schema

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/pressly/goose/v3"

	"docket/internal/errclass"
)

// shortLocks has each file wait for a lock for as long as [lockWaitSQL] says, as later ones queue up behind it. An index that is made
// concurrently waits for as long as it takes, whatever limit the role has. It waits for old transactions, with a lock on the table
// that keeps nobody from reading and writing. One that is given up would be made again each time.
type shortLocks struct{ fs.FS }

// Open is of [fs.FS].
func (s shortLocks) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	text, err := fs.ReadFile(s.FS, name)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return shortLocksFile{f, strings.NewReader(inShortLocks(string(text)))}, nil
}

var concurrently = regexp.MustCompile(`(?m)^(CREATE|DROP) INDEX CONCURRENTLY [^;]*;`)

func inShortLocks(text string) string {
	if strings.Contains(text, "-- +goose NO TRANSACTION") {
		const shortly = "SET lock_timeout = '2s';\n"
		text = concurrently.ReplaceAllString(text, "SET lock_timeout = 0;\n$0\n"+shortly)
		return strings.Replace(text, "-- +goose Up\n", "-- +goose Up\n"+shortly, 1)
	}
	return strings.Replace(text, "-- +goose Up\n", "-- +goose Up\n"+lockWaitSQL+";\n", 1)
}

type shortLocksFile struct {
	fs.File
	text *strings.Reader
}

func (f shortLocksFile) Read(p []byte) (int, error) { return f.text.Read(p) }

// upInShortLocks applies all migrations. A file that does not get its locks is applied again, after a pause in which others work.
func (s *Schema) upInShortLocks(ctx context.Context, p *goose.Provider) (applied int, err error) {
	for try := 1; ; try++ {
		results, err := p.Up(ctx)
		partial, ok := errors.AsType[*goose.PartialError](err)
		if !ok {
			return applied + len(results), err
		}
		if partial.Failed.Source.Type != goose.TypeSQL { // one in Go has its own tries
			return applied + len(partial.Applied), err
		}
		applied += len(partial.Applied)
		code := errclass.Classify(partial.Err).Code
		if code != pgerrcode.LockNotAvailable && code != pgerrcode.DeadlockDetected || try >= lockTries {
			return applied, err
		}
		if try == 1 {
			s.db.Logger().Warn().Int64("migration", partial.Failed.Source.Version).Str("code", code).
				Str("hint", "it is tried again each second, and others work meanwhile: end the transaction that has the table, such as one of pg_dump").Msg("migration waits for a lock")
		}
		select {
		case <-ctx.Done():
			return applied, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
