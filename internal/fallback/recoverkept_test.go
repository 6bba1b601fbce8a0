package fallback_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/fstest"
)

// TestRecover_ManyKeptFilesHideNoNewOne: more files than a scan sees fail each time, and one that is newer has its turn all the
// same, also after a restart.
func TestRecover_ManyKeptFilesHideNoNewOne(t *testing.T) {
	t.Parallel()
	const kept = 300
	for name, before := range map[string]int{"after a restart": 0, "later": 3 * kept} {
		m := fstest.New()
		for i := range kept {
			plant(t, m, fmt.Sprintf("1700000001_a_%03d", i), linesOf("poison"))
		}
		c := cfg()
		c.ScanLimit = 100
		s := open(t, c, m)
		b := &broker{answer: func(r *kgo.Record) error {
			if string(r.Key) == "poison" {
				return errAway
			}
			return nil
		}}
		recoverFiles := func(n int) {
			for range n {
				if _, err := s.Recover(t.Context(), b); err != nil && !errors.Is(err, errAway) {
					t.Fatal(err)
				}
			}
		}
		recoverFiles(before)
		mustAppend(t, s, linesOf("new")...)
		recoverFiles(150) // a dice decides which goes first
		if got := b.keys(); len(got) != 1 || s.Stats().Files != kept {
			t.Errorf("%s: published %v, %+v", name, got, s.Stats())
		}
	}
}
