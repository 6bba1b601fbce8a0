package failpoint

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
)

// taker is a topic that takes everything.
type taker struct{}

func (taker) Publish(_ context.Context, records []*kgo.Record) []error {
	return make([]error, len(records))
}

func openSpool(t *testing.T, d *Disk, dir string) *fallback.Spool {
	t.Helper()
	sp, err := fallback.Open(fallback.Config{Dir: dir, Instance: "test", MaxBytes: 1 << 20}, d, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sp.Close() })
	return sp
}

func TestSpool_PointsInOrderOfTheProtocol(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "spool-tmp-created=stop,spool-tmp-half-written=stop,spool-tmp-synced=stop,spool-meta-written=stop,spool-meta-renamed=stop,"+
		"spool-renamed=stop,spool-dir-synced=stop,spool-file-published=stop,spool-file-unlinked=stop")
	dir := filepath.Join(t.TempDir(), "spool")
	d := s.Disk(fallback.OS(dir))
	sp := openSpool(t, d, dir)
	if err := sp.Append(t.Context(), []fallback.Line{{Record: &kgo.Record{Topic: "dlq", Value: []byte("v")}}}); err != nil {
		t.Fatal(err)
	}
	said(t, log, SpoolTmpCreated, SpoolTmpHalfWritten, SpoolTmpSynced, SpoolMetaWritten, SpoolMetaRenamed, SpoolRenamed, SpoolDirSynced)
	*log = nil
	if r, err := sp.Recover(t.Context(), d.Recovery(taker{})); err != nil || !r.Done {
		t.Fatalf("%+v, %v", r, err)
	}
	said(t, log, SpoolFilePublished, SpoolFileUnlinked)
}

func TestSpool_ErrorFailsTheAppend(t *testing.T) {
	t.Parallel()
	for _, p := range Table() {
		if p.Where != onDisk || p.Point == SpoolFilePublished || p.Point == SpoolFileUnlinked {
			continue
		}
		s, _ := watched(t, string(p.Point)+"=error")
		dir := filepath.Join(t.TempDir(), "spool")
		sp := openSpool(t, s.Disk(fallback.OS(dir)), dir)
		err := sp.Append(t.Context(), []fallback.Line{{Record: &kgo.Record{Topic: "dlq", Value: []byte("v")}}})
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", p.Point, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.gz*")); len(left) > 0 {
			t.Errorf("%s: the append failed and left %v", p.Point, left)
		}
	}
}
