//go:build !race

// The race detector makes each of these take half a minute, and one goroutine does all of it.

package fallback_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

func TestRecover_FailingDiskLosesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range []fstest.Op{fstest.OpOpen, fstest.OpRead, fstest.OpReadDir, fstest.OpStat, fstest.OpRemove, fstest.OpSyncDir, fstest.OpCreate, fstest.OpWrite, fstest.OpSync, fstest.OpRename, fstest.OpClose, fstest.OpAny} {
		for _, errno := range fstest.Errnos[:2] {
			for _, forever := range []bool{false, true} {
				for n := 1; failRecover(t, fstest.Fault{Op: op, N: n, Err: errno, Forever: forever}); n++ {
					if n > 200 {
						t.Fatal("Recover always reaches the fault")
					}
				}
			}
		}
	}
}

func failRecover(t *testing.T, fault fstest.Fault) bool {
	t.Helper()
	m, s, b := mixedSpool(t)
	m.Fail(fault)
	for range 4 {
		_, _ = s.Recover(t.Context(), b)
	}
	struck := m.Reached()
	m.Heal()
	for range 20 { // a failed file comes again
		_, _ = s.Recover(t.Context(), b)
	}
	checkMixed(t, fmt.Sprint(fault), b.keys(), settle(t, m.Reboot(fstest.Lost, 0)))
	// If also the removal or the look at a file failed, the oversize file may exist, or be counted, twice.
	blind := fault.Op == fstest.OpAny && fault.Forever
	if st := s.Stats(); !blind && st.Files != int64(len(dataFiles(m))) || st.Files < 1 || st.OversizeRecords != uint64(st.Files) || st.CorruptFiles > 1 {
		t.Errorf("%+v: stats %+v", fault, st)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return struck
}

func TestOpen_NoFileBlocksTheStart(t *testing.T) {
	t.Parallel()
	directory := map[fstest.Op]bool{fstest.OpReadDir: true, fstest.OpLock: true, fstest.OpStat: true, fstest.OpOpen: true, fstest.OpChmod: true, fstest.OpAny: true}
	for _, op := range []fstest.Op{fstest.OpOpen, fstest.OpRead, fstest.OpReadDir, fstest.OpStat, fstest.OpRemove, fstest.OpSyncDir, fstest.OpClose, fstest.OpLock, fstest.OpAny} {
		for _, errno := range fstest.Errnos {
			for _, forever := range []bool{false, true} {
				for n, more := 1, true; more; n++ {
					m := littered(t)
					m.Fail(fstest.Fault{Op: op, N: n, Err: errno, Forever: forever})
					s, err := fallback.Open(cfg(), m, zerolog.Nop())
					more = m.Reached()
					m.Heal()
					if err != nil && (!directory[op] || !errors.Is(err, errno)) {
						t.Fatalf("%s %d %v: a file kept the spool from opening: %v", op, n, errno, err)
					}
					if err == nil {
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
					}
					checkLittered(t, fmt.Sprint(op, n, errno), m)
					if t.Failed() || n > 200 {
						t.Fatalf("%s %d %v", op, n, errno)
					}
				}
			}
		}
	}
}
