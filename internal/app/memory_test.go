package app

import (
	"testing"

	"docket/internal/config"
)

func TestMemoryThatIsAimedAtFollowsFromTheSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		program config.Program
		batch   config.Size
		want    int64
	}{
		{config.Consumer, 8 << 20, 136 << 20},
		{config.Consumer, 16 << 20, 208 << 20},
		{config.Replayer, 8 << 20, 0},
	} {
		if got := SoftMemory(tc.program, config.Settings{BatchMaxBytes: tc.batch}); got != tc.want {
			t.Errorf("%s with batches of %v: %d, want %d", tc.program, tc.batch, got, tc.want)
		}
	}
}
