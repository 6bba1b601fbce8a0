package fallback_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

// A file that gets its name while another one is published was not published: it must not go with that one.
func TestRecover_FileReplacedWhileItIsPublished(t *testing.T) {
	t.Parallel()
	const name = "1700000001_a_1"
	for of, c := range map[string]struct {
		held   int
		broken bool
	}{
		"held in memory": {held: 16 << 20},
		"read twice":     {},
		"broken":         {held: 16 << 20, broken: true},
	} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			m := fstest.New()
			s := open(t, cfg(), m)
			s.SetMemory(c.held, 1<<20)
			plant(t, m, name, linesOf("a", "b"))
			if c.broken {
				m.Plant(name+".jsonl.gz", append(m.Content(name+".jsonl.gz"), 'x'), 0o600, 1)
			}
			replaced := false
			b := &broker{answer: func(*kgo.Record) error {
				if !replaced {
					replaced = true
					plant(t, m, name, linesOf("c", "d"))
				}
				return nil
			}}
			if r, err := s.Recover(t.Context(), b); err == nil || r.Done {
				t.Errorf("recovered %+v, %v", r, err)
			}
			drain(t, s, b)
			wantKeys(t, b.keys(), "a", "b", "c", "d")
		})
	}
}

// Where only the removal of a published file fails, another one may have its name when that is tried again.
func TestRecover_UndeletableFileReplaced(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	plant(t, m, "1700000001_a_1", linesOf("a"))
	m.Fail(fstest.Fault{Op: fstest.OpRemove, N: 1, Err: fstest.Errnos[2], Forever: true})
	b := &broker{}
	if _, err := s.Recover(t.Context(), b); !errors.Is(err, fstest.Errnos[2]) {
		t.Fatal(err)
	}
	m.Heal()
	plant(t, m, "1700000001_a_1", linesOf("b"))
	if _, err := s.Recover(t.Context(), b); err == nil {
		t.Error("the other file was taken for the published one")
	}
	drain(t, s, b)
	wantKeys(t, b.keys(), "a", "b")
}

// bent is a file system that gives other bytes of data files when they are opened for the second time.
type bent struct {
	*fstest.FS
	opened int
	other  []byte
}

func (f *bent) Open(name string) (fallback.File, error) {
	if !strings.HasSuffix(name, ".gz") {
		return f.FS.Open(name)
	}
	if f.opened++; f.opened != 2 {
		return f.FS.Open(name)
	}
	f.Plant("other", f.other, 0o600, 1)
	return f.FS.Open("other")
}

// A large file is read once to be judged and once to be published. Bytes that the disk gave otherwise the second time were not judged.
func TestRecover_ReadOtherwiseTheSecondTime(t *testing.T) {
	t.Parallel()
	m := &bent{FS: fstest.New()}
	s := open(t, cfg(), m)
	s.SetMemory(0, 1)
	plant(t, m.FS, "1700000001_a_1", linesOf("a", "b"))
	data, _, err := fallback.ImageOf(linesOf("c"))
	if err != nil {
		t.Fatal(err)
	}
	m.other = gz(t, gunzip(t, data)+"unreadable\n")
	b := &broker{}
	if r, err := s.Recover(t.Context(), b); err == nil || r.Done {
		t.Errorf("recovered %+v, %v", r, err)
	}
	drain(t, s, b)
	wantKeys(t, b.keys(), "c", "a", "b")
}

// A round can end before the end of a large file. Only then is it known that the lines of the second reading are those of the file.
func TestRecover_ReadOtherwiseAndNotToItsEnd(t *testing.T) {
	t.Parallel()
	for why, stopped := range map[string]bool{"brokers away": false, "stopped": true} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			m := &bent{FS: fstest.New()}
			s := open(t, cfg(), m)
			s.SetMemory(0, 1)
			plant(t, m.FS, "1700000001_a_1", linesOf("a", "b", "x"))
			other, _, err := fallback.ImageOf(linesOf("c", "d", "x"))
			if err != nil {
				t.Fatal(err)
			}
			m.other = other
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			b := &broker{answer: func(r *kgo.Record) error {
				if string(r.Key) != "c" {
					return errAway
				}
				if stopped {
					stop()
				}
				return nil
			}}
			if r, err := s.Recover(ctx, b); err == nil || r.Done {
				t.Errorf("recovered %+v, %v", r, err)
			}
			b.refuse(nil)
			drain(t, s, b)
			wantKeys(t, b.keys(), "c", "a", "b", "x")
		})
	}
}
