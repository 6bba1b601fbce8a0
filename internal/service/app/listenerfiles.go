package app

import (
	"strings"

	"github.com/rs/zerolog"

	"docket/internal/service/telemetry"
)

// ListenerFiles returns a function that logs when the certificates of a listener cannot be used, and when they can again.
func ListenerFiles(log zerolog.Logger) func(error) {
	return func(err error) {
		if err == nil {
			log.Info().Msg("listener certificates became readable")
			return
		}
		log.Warn().Str(telemetry.KeyReason, strings.ReplaceAll(err.Error(), "\n", "; ")).
			Str(telemetry.KeyHint, "correct the file; the last usable one stays in use").Msg("listener certificates not reloaded")
	}
}
