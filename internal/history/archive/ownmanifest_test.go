package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// spoiling is a storage that does not keep manifests as they were written.
type spoiling struct {
	Shelf
	spoil func([]byte) []byte
}

func (s spoiling) Put(ctx context.Context, name string, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, manifestSuffix) {
		b = s.spoil(b)
	}
	return s.Shelf.Put(ctx, name, bytes.NewReader(b))
}

// A day is dropped only if the manifest of its archive can be read back, and says what was written. That holds for a day that left
// the table before, too.
func TestCarrier_ReadsItsManifestBack(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func([]byte) []byte{
		"cut":           func(b []byte) []byte { return b[:len(b)/2] },
		"another hash":  func(b []byte) []byte { return bytes.Replace(b, []byte(`"hash": "`), []byte(`"hash": "0`), 1)[:len(b)] },
		"another count": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"rows": 5`), []byte(`"rows": 6`)) },
		"another file": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"content_sha256": "`), []byte(`"content_sha256": "x`), 1)
		},
	} {
		for _, left := range []*Left{nil, {}, {Archives: []string{"decision_logs-2026-03-04-001-abcdef-00000000"}}} {
			table := &stepping{where: Leaving, lines: fewLines(5), left: left}
			c := Carrier{Table: table, Shelf: spoiling{Dir(t.TempDir()), spoil}, By: "desk", Docket: "test", Now: time.Now}
			done, err := c.Archive(t.Context(), dayNamed(t, "2026-03-04"), false)
			if broken, is := errors.AsType[*BrokenError](err); !is || broken.Archive != done.Archive || table.dropped {
				t.Errorf("%s, left %v: %v, dropped %v", name, left, err, table.dropped)
			}
		}
	}
}

// The name of an operator can have bytes that JSON changes. The day is dropped all the same.
func TestCarrier_NameThatIsNoUTF8(t *testing.T) {
	t.Parallel()
	table := &stepping{where: Leaving, lines: fewLines(5)}
	c := Carrier{Table: table, Shelf: Dir(t.TempDir()), By: "Andr\xe9", Docket: "test", Now: time.Now}
	if done, err := c.Archive(t.Context(), dayNamed(t, "2026-03-04"), false); err != nil || !done.Dropped {
		t.Errorf("%+v, %v", done, err)
	}
}
