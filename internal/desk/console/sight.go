package console

import (
	"context"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/peers"
	"docket/internal/desk/worker"
	"docket/internal/history/complete"
)

// Sight is what the console sees beside the stores of the API. Each port keeps to a limit of its own. A nil port is a
// place that this desk does not see, and pages say so.
type Sight struct {
	// Peers looks at the other programs.
	Peers func(ctx context.Context) []peers.Peer
	// Waits says what waits in Kafka, and when that was looked at. It must not wait. Slow reports that Kafka is too slow
	// to be asked.
	Waits func() (all []complete.Waits, at time.Time, known, slow bool)
	// Members counts the members of a consumer group.
	Members func(ctx context.Context, group string) (int, error)
	// Alerts are those that last.
	Alerts func(ctx context.Context) ([]worker.Told, error)
	// Lanes are those of the settings, the default lane first. One: lanes are off.
	Lanes []Lane
	// Check looks at all that Docket relies on, as docket check does. It may take a minute.
	Check func(ctx context.Context) []api.Finding
	// Settings are those of this desk.
	Settings []SettingLine
}

// Lane is a lane of the settings.
type Lane struct{ Name, Topic, Group string }

// SettingLine is a setting of a program. Value is empty for a secret.
type SettingLine struct {
	Group, Name, Value, Source string
	Secret                     bool
}
