package telemetry

import (
	"testing"

	"github.com/rs/zerolog"
)

func TestCalm_InfoIsNeverLeftOut(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	log := calm(zerolog.New(b.out), b.Observer.now)
	for range burst + 7 {
		log.Info().Msg("assigned")
		log.Warn().Msg("trouble")
		log.Error().Msg("more of it")
	}
	log.Info().Msg("ended")
	infos, left, others := 0, 0, 0
	for _, l := range b.lines() {
		if n, ok := l[KeyLeftOut].(float64); ok {
			left += int(n)
		}
		if l["level"] == "info" {
			infos++
		} else {
			others++
		}
	}
	if infos != burst+8 || others != 2*burst || left != 2*7 {
		t.Errorf("%d lines at info, %d above, %d said to be left out; want %d, %d and %d", infos, others, left, burst+8, 2*burst, 2*7)
	}
}
