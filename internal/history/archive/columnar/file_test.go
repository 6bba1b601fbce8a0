package columnar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/reader"
	"docket/internal/record/decision"
	"docket/internal/record/subject"
)

// disk is a file in memory that counts what is read of it.
type disk struct {
	data  []byte
	mu    sync.Mutex
	bytes int64
	reads int
}

func (d *disk) ReadAt(_ context.Context, p []byte, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes += int64(len(p))
	d.reads++
	copy(p, d.data[off:])
	return nil
}

func (d *disk) since() (int64, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, r := d.bytes, d.reads
	d.bytes, d.reads = 0, 0
	return n, r
}

var byHost = subject.Spec{Kind: subject.RequestedByHost}

func write(t testing.TB, o Options, all [][]byte) *disk {
	t.Helper()
	var out bytes.Buffer
	if o.Columns == nil {
		o.Columns = table()
	}
	w, err := NewWriter(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &disk{data: out.Bytes()}
}

func open(t testing.TB, d *disk) *File {
	t.Helper()
	f, err := Open(t.Context(), d, int64(len(d.data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRows_ComeBackAsWritten(t *testing.T) {
	t.Parallel()
	all := lines(t, 5000, 3)
	d := write(t, Options{Subject: byHost, GroupRows: 1100}, all)
	f := open(t, d)
	if f.Groups() != 5 || f.NumRows() != 5000 {
		t.Fatal(f)
	}
	var whole bytes.Buffer
	n := 0
	err := f.Rows(t.Context(), &whole, func(line []byte) error {
		if !bytes.Equal(line, all[n]) {
			t.Fatalf("row %d is\n%s, not\n%s", n, line, all[n])
		}
		n++
		return nil
	})
	if err != nil || n != len(all) || !bytes.Equal(whole.Bytes(), d.data) {
		t.Errorf("%d rows, %d bytes of %d, %v", n, whole.Len(), len(d.data), err)
	}
}

func idOf(line []byte) string { return string(line[16 : 16+36]) }

// An id can have several times, in groups that are far from each other.
func TestFind_EachTime(t *testing.T) {
	t.Parallel()
	var all [][]byte
	for i := range 50 {
		id := i
		if i%20 == 7 {
			id = 7
		}
		all = append(all, fmt.Appendf(nil, `{"decision_id":"d%d","ts":%s}`, id, quotedTime(nil, 1785542400000000+int64(i))))
	}
	f := open(t, write(t, Options{GroupRows: 4}, all))
	rows, err := f.Find(t.Context(), "d7")
	if err != nil || len(rows) != 3 || !bytes.Equal(rows[0].Line, all[7]) || !bytes.Equal(rows[1].Line, all[27]) || !bytes.Equal(rows[2].Line, all[47]) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if may, err := f.MayHave(t.Context(), "d7"); !may || err != nil {
		t.Errorf("%t, %v", may, err)
	}
}

// An open file answers several questions at once.
func TestFile_ManyAtOnce(t *testing.T) {
	t.Parallel()
	all := lines(t, 2000, 3)
	f := open(t, write(t, Options{Subject: byHost, GroupRows: 500}, all))
	var g errgroup.Group
	for i := range 16 {
		g.Go(func() error {
			rows, err := f.Find(t.Context(), idOf(all[i*123]))
			if err == nil && len(rows) != 1 {
				err = fmt.Errorf("%d rows", len(rows))
			}
			return errors.Join(err, f.Search(t.Context(), Question{Paths: []string{"http/*"}, Oldest: i%2 == 0}, func(Row) (bool, error) { return false, nil }))
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// The revisions are those that `docket why` tells.
func TestRevision_AsInAnswers(t *testing.T) {
	t.Parallel()
	for bundles, want := range map[string]string{
		``: "", `{}`: "", `{"authz": {"revision": "r1"}}`: "authz@r1", `{"a": {}, "authz": {"revision": 7}}`: "a, authz@7", `{"a": {"revision": null}}`: "a", `{"a": {"revision": ""}}`: "a", `[1]`: "", `null`: "",
		`{"": {"revision": "r"}}`: "r",
	} {
		if got := (revisions{}).of([]byte(bundles)); got != want {
			t.Errorf("%s: %q, want %q", bundles, got, want)
		}
		var named []reader.Bundle
		if json.Unmarshal([]byte(bundles), &map[string]any{}) != nil {
			continue
		}
		for in := decision.Into([]byte(bundles), 0); in.Next(); {
			name := decision.Text([]byte(bundles)[in.Start : in.Value-2])
			named = append(named, reader.Bundle{Name: name, Revision: revision([]byte(bundles)[in.Value:in.End])})
		}
		if told := reader.Revision(named); told != want {
			t.Errorf("%s: %q in answers, want %q", bundles, told, want)
		}
	}
}
