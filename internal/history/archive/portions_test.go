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
		rows, bytes, ahead := rapid.IntRange(1, 10).Draw(t, "rows"), rapid.IntRange(1, 100).Draw(t, "bytes"), rapid.IntRange(1, 4).Draw(t, "ahead")
		breaks := rapid.IntRange(-1, len(lines)).Draw(t, "read breaks at")
		refuses := rapid.IntRange(-1, len(lines)).Draw(t, "take refuses from")
		broken, refused := errors.New("broken"), errors.New("refused")
		var got []string
		var wrong error
		err := inPortions(rows, bytes, ahead, func(each func([]byte) error) error {
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
		err := inPortions(1, 100, 1, func(each func([]byte) error) error {
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

// TestInPortions_ReadsAhead has a reader that is silent for four seconds, and then has four lines at once. Each takes a
// second.
func TestInPortions_ReadsAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		err := inPortions(1, 100, 4, func(each func([]byte) error) error {
			for range 3 {
				time.Sleep(4 * time.Second)
				for range 4 {
					if err := each([]byte("line")); err != nil {
						return err
					}
				}
			}
			return nil
		}, func([][]byte) error {
			time.Sleep(time.Second)
			return nil
		})
		if took := time.Since(from); err != nil || took != 16*time.Second {
			t.Errorf("it took %v, want 16 s, and ended with %v", took, err)
		}
	})
}

// TestInPortions_LargeLinesAlone has lines of more bytes than may wait. One of them waits while another one is taken.
func TestInPortions_LargeLinesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read, taken, most := 0, 0, 0
		err := inPortions(1, 10, 4, func(each func([]byte) error) error {
			for range 8 {
				if err := each(make([]byte, 50)); err != nil {
					return err
				}
				read++
			}
			return nil
		}, func([][]byte) error {
			time.Sleep(time.Second)
			synctest.Wait()
			most = max(most, read-taken)
			taken++
			return nil
		})
		if err != nil || taken != 8 || most > 1 {
			t.Errorf("%d were taken, %d of them in memory besides the one that waits: %v", taken, most, err)
		}
	})
}

// TestInPortions_LetsLargeLinesGo has small lines in every portion, and then large ones. No portion keeps a large one.
//
//nolint:paralleltest // it measures what is the whole process's
func TestInPortions_LetsLargeLinesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large, bytes, ahead = 4 << 20, 64 << 10, 8
		live := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		taken, before, after := 0, live(), uint64(0)
		err := inPortions(1000, bytes, ahead, func(each func([]byte) error) error {
			small := make([]byte, 100)
			for range 2 * ahead * bytes / len(small) {
				if err := each(small); err != nil {
					return err
				}
			}
			for range 3 * ahead {
				if err := each(make([]byte, large)); err != nil {
					return err
				}
			}
			return nil
		}, func(lines [][]byte) error {
			time.Sleep(time.Second) // all portions are filled meanwhile
			if len(lines[len(lines)-1]) == large {
				if taken++; taken == 3*ahead {
					after = live()
				}
			}
			return nil
		})
		if err != nil || after == 0 || after > before+4*large {
			t.Errorf("%d KiB are kept, %d before: %v", after>>10, before>>10, err)
		}
	})
}
