package telemetry

import (
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
)

// Logger makes a program's logger: lines for machines, or for people where console is true. level is one of zerolog's
// names. Lines are written one at a time, whatever w is.
func Logger(w io.Writer, level string, console bool) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), fmt.Errorf("log level: %w", err)
	}
	if console {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: true}
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(l).With().Timestamp().Logger(), nil
}
