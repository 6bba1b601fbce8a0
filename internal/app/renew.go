package app

import (
	"context"
	"time"

	"docket/internal/config"
)

// RenewEvery is how soon a secret in its file holds.
const RenewEvery = 2 * time.Second

// Renewal takes over a secret that changes in its file while the program runs.
type Renewal struct {
	Settings config.Settings
	Variable string        // of the secret, without _FILE
	Loaded   config.Secret // the secret in use at the start
	Every    time.Duration
	// Use takes over a secret. After an error the one before stays in use: half of the file may be written.
	Use func(config.Secret) error
	// Changed, Broken and Readable tell. Broken is called once until the file can be used again, which Readable tells.
	Changed, Readable func()
	Broken            func(error)
}

// Run looks at the file until ctx ends.
func (r Renewal) Run(ctx context.Context) {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	now, broken := r.Loaded, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		fresh, err := r.Settings.Fresh(r.Variable, now)
		if err == nil && fresh != now {
			err = r.Use(fresh)
		}
		if err != nil {
			if !broken {
				r.Broken(err)
			}
			broken = true
			continue
		}
		if broken {
			r.Readable()
			broken = false
		}
		if fresh != now {
			now = fresh
			r.Changed()
		}
	}
}
