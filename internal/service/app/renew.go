package app

import (
	"context"
	"time"

	"docket/internal/service/config"
)

// RenewEvery is how soon a change of such a file holds.
const RenewEvery = 2 * time.Second

// Renewal takes over what changes in its file while the program runs.
type Renewal struct {
	Loaded config.Secret // the one in use at the start
	Every  time.Duration
	// Read gives what the file has now, given what is in use.
	Read func(config.Secret) (config.Secret, error)
	// Use takes it over. After an error the one before stays in use: half of the file may be written.
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
		fresh, err := r.Read(now)
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
