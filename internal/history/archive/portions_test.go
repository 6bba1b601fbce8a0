package archive

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestInPortions_PassesEachLineOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringN(0, 20, -1), 0, 50).Draw(t, "lines")
		rows, bytes := rapid.IntRange(1, 10).Draw(t, "rows"), rapid.IntRange(1, 100).Draw(t, "bytes")
		breaks := rapid.IntRange(-1, len(lines)).Draw(t, "read breaks at")
		refuses := rapid.IntRange(-1, len(lines)).Draw(t, "take refuses from")
		broken, refused := errors.New("broken"), errors.New("refused")
		var got []string
		var wrong error
		err := inPortions(rows, bytes, func(each func([]byte) error) error {
			own := make([]byte, 0, 100)
			for i, line := range lines {
				if i == breaks {
					return broken
				}
				own = append(own[:0], line...) // it is valid until each returns
				if err := each(own); err != nil {
					return fmt.Errorf("pass: %w", err)
				}
			}
			return nil
		}, func(portion [][]byte) error {
			size := 0
			for i, line := range portion {
				if size >= bytes || i >= rows {
					wrong = fmt.Errorf("a portion has %d lines of %d bytes before the last one", i, size)
				}
				if size += len(line); len(got) == refuses {
					return refused
				}
				got = append(got, string(line))
			}
			return nil
		})
		switch {
		case wrong != nil:
			t.Fatal(wrong)
		case !slices.Equal(got, lines[:len(got)]):
			t.Fatalf("taken: %q of %q", got, lines)
		case errors.Is(err, refused):
			if len(got) != refuses {
				t.Fatalf("%d lines were taken, refused from %d", len(got), refuses)
			}
		case breaks >= 0 && breaks < len(lines):
			if !errors.Is(err, broken) || len(got) > breaks {
				t.Fatalf("%d lines were taken, read broke at %d: %v", len(got), breaks, err)
			}
		case err != nil || len(got) < len(lines) || refuses >= 0 && refuses < len(lines):
			t.Fatalf("%d lines of %d, %v", len(got), len(lines), err)
		}
	})
}

// TestInPortions_ReadsWhileItTakes has a reader and a taker that need a second each for a portion.
func TestInPortions_ReadsWhileItTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		err := inPortions(1, 100, func(each func([]byte) error) error {
			for range 10 {
				time.Sleep(time.Second)
				if err := each([]byte("line")); err != nil {
					return err
				}
			}
			return nil
		}, func([][]byte) error {
			time.Sleep(time.Second)
			return nil
		})
		if took := time.Since(from); err != nil || took != 11*time.Second {
			t.Errorf("it took %v, want 11 s, and ended with %v", took, err)
		}
	})
}

// TestInPortions_LetsLargeLinesGo has a large line behind fewer and fewer small ones. No portion keeps it.
//
//nolint:paralleltest // it measures what is the whole process's
func TestInPortions_LetsLargeLinesGo(t *testing.T) {
	const large, bytes, n = 4 << 20, 64 << 10, 20
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	taken, before, after := 0, live(), uint64(0)
	err := inPortions(1000, bytes, func(each func([]byte) error) error {
		for i := range n {
			for range n - i {
				if err := each([]byte("small")); err != nil {
					return err
				}
			}
			if err := each(make([]byte, large)); err != nil {
				return err
			}
		}
		return nil
	}, func([][]byte) error {
		if taken++; taken == n {
			after = live()
		}
		return nil
	})
	if err != nil || after == 0 || after > before+4*large {
		t.Errorf("%d KiB are kept, %d before: %v", after>>10, before>>10, err)
	}
}
