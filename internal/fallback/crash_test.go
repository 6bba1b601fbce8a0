package fallback_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

// inEveryState runs check on each disk that a power cut may leave. It returns their number.
func inEveryState(t *testing.T, m *fstest.FS, check func(disk *fstest.FS)) (states int) {
	t.Helper()
	for disk := range m.States() {
		if states++; states > 20_000 {
			t.Fatal("more states than anybody can go through")
		}
		check(disk)
		if t.Failed() {
			return states
		}
	}
	return states
}

// wholeOrNone checks that an append leaves no broken file after a power cut.
func wholeOrNone(t *testing.T, disk *fstest.FS, err error) {
	t.Helper()
	left := disk.Files(".")
	checkHomes(t, settle(t, disk), err, "before")
	if broken := disk.Files("corrupt"); len(broken) > 0 {
		t.Errorf("half a home: %v, of %v", broken, left)
	}
}

func twoKinds() []fallback.Line {
	batch := linesOf("a", "b", "c")
	batch[1].Oversize = true
	return batch
}

func TestCrash_InAppend(t *testing.T) {
	t.Parallel()
	for n, states := 1, 0; ; n++ {
		m := fstest.New()
		s := open(t, cfg(), m)
		mustAppend(t, s, linesOf("before")...)
		m.Cut(n)
		err := s.Append(t.Context(), twoKinds())
		states += inEveryState(t, m, func(disk *fstest.FS) { wholeOrNone(t, disk, err) })
		if !m.IsCut() {
			if n < 10 || states < 100 {
				t.Errorf("only %d operations and %d states", n, states)
			}
			t.Logf("%d states of %d cuts", states, n)
			return
		}
	}
}

func TestCrash_AfterAFailedAppend(t *testing.T) {
	t.Parallel()
	for _, op := range []fstest.Op{fstest.OpCreate, fstest.OpWrite, fstest.OpSync, fstest.OpClose, fstest.OpRename, fstest.OpRemove, fstest.OpSyncDir, fstest.OpStat, fstest.OpAny} {
		for _, forever := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", op, forever), func(t *testing.T) {
				t.Parallel()
				for n, more := 1, true; more; n++ {
					m := fstest.New()
					s := open(t, cfg(), m)
					mustAppend(t, s, linesOf("before")...)
					m.Fail(fstest.Fault{Op: op, N: n, Err: fstest.Errnos[1], Forever: forever})
					err := s.Append(t.Context(), twoKinds())
					more = m.Reached()
					m.Heal()
					inEveryState(t, m, func(disk *fstest.FS) { wholeOrNone(t, disk, err) })
					// The disk is well again: a new home is safe, whatever is left from before.
					if err != nil {
						again := s.Append(t.Context(), linesOf("later"))
						inEveryState(t, m, func(disk *fstest.FS) {
							if got := settle(t, disk); again != nil || !slices.Contains(got, "later") {
								t.Errorf("fault %d: appended afterwards (%v) and lost: %q", n, again, got)
							}
						})
					}
					if t.Failed() || n > 100 {
						t.Fatalf("fault %d", n)
					}
				}
			})
		}
	}
}

func TestCrash_InRecovery(t *testing.T) {
	t.Parallel()
	for n, states := 1, 0; ; n++ {
		m, s, b := mixedSpool(t)
		m.Cut(n)
		for range 6 {
			_, _ = s.Recover(t.Context(), b)
		}
		states += inEveryState(t, m, func(disk *fstest.FS) {
			checkMixed(t, fmt.Sprintf("cut %d", n), b.keys(), settle(t, disk))
		})
		cut := m.IsCut()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !cut || t.Failed() {
			t.Logf("%d states of %d cuts", states, n)
			return
		}
	}
}

// littered is a directory as a killed process leaves it: a whole file, one without its meta, a meta without its file,
// tmp files, a broken file, an oversize one and a foreign one.
func littered(t *testing.T) *fstest.FS {
	t.Helper()
	m, s, _ := mixedSpool(t)
	big := linesOf("huge")
	big[0].Oversize = true
	mustAppend(t, s, big...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m.Plant("1700000004_a_4.meta.json", []byte(`{"num_events":1}`), 0o600, 1)
	m.Plant(".1700000005_a_5.jsonl.gz.tmp", []byte("half"), 0o600, 1)
	m.Plant("notes.txt", []byte("x"), 0o600, 1)
	return m
}

// checkLittered checks that another start finds everything.
func checkLittered(t *testing.T, when string, m *fstest.FS) {
	t.Helper()
	got := settleLeaving(t, m, "notes.txt")
	checkMixed(t, when, got, nil)
	if !slices.Contains(got, "huge") {
		t.Errorf("%s: the oversize record was lost: %q", when, got)
	}
}

// settleLeaving opens the rest of a disk and returns every recovered key.
func settleLeaving(t *testing.T, m *fstest.FS, foreign string) []string {
	t.Helper()
	s, err := fallback.Open(cfg(), m, zerolog.Nop())
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	b := &broker{}
	drain(t, s, b)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := m.Files("."); !slices.Equal(left, []string{".lock", foreign}) {
		t.Errorf("left in the directory: %v", left)
	}
	return b.keys()
}

func TestCrash_InTheSweepOfAStart(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		m := littered(t)
		m.Cut(n)
		if s, err := fallback.Open(cfg(), m, zerolog.Nop()); err == nil {
			_ = s.Close()
		}
		inEveryState(t, m, func(disk *fstest.FS) { checkLittered(t, fmt.Sprintf("cut %d", n), disk) })
		if !m.IsCut() || t.Failed() {
			return
		}
	}
}

func TestAppend_HalfWriteOrSecondSyncIsNoHome(t *testing.T) {
	t.Parallel()
	// A sync fails once, the kernel drops the dirty pages, and the next sync succeeds: only a new file is safe.
	m := fstest.New()
	s := open(t, cfg(), m)
	m.Fail(fstest.Fault{Op: fstest.OpSync, N: 1, Err: fstest.Errnos[1]})
	if err := s.Append(t.Context(), linesOf("lost")); err == nil {
		t.Error("a failed sync was taken for a home")
	}
	mustAppend(t, s, linesOf("a")...)
	inEveryState(t, m, func(disk *fstest.FS) {
		if got := settle(t, disk); !slices.Contains(got, "a") || len(disk.Files("corrupt")) > 0 {
			t.Errorf("got %q, corrupt %v", got, disk.Files("corrupt"))
		}
	})
}
