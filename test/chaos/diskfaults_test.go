//go:build integration

package chaos

import (
	"context"
	"errors"
)

func (c *campaign) diskFaults() map[string]inject {
	return map[string]inject{
		"Postgres's disk full": func(context.Context, Fault) (func(context.Context) error, error) {
			return func(context.Context) error { return c.disks.emptyTable() }, c.disks.fillTable()
		},
		"spool's disk full": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			return func(context.Context) error { return c.disks.emptySpool(f.Target) }, c.disks.fillSpool(f.Target)
		},
		"spool's disk full, dead-letter topic takes nothing": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			heal, err := c.refusing(ctx, f.Target, c.places.DLQTopic)
			if err == nil {
				err = c.fillSpools()
			}
			return func(ctx context.Context) error { return errors.Join(heal(ctx), c.emptySpools()) }, err
		},
	}
}

// fillSpools leaves no room in any spool, where spools have disks of their own.
func (c *campaign) fillSpools() error {
	if !c.disks.mounted {
		return nil
	}
	var errs []error
	for i := range c.slots {
		errs = append(errs, c.disks.fillSpool(i))
	}
	return errors.Join(errs...)
}

func (c *campaign) emptySpools() error {
	var errs []error
	for i := range c.slots {
		errs = append(errs, c.disks.emptySpool(i))
	}
	return errors.Join(errs...)
}

func (c *campaign) emptyAll() error {
	return errors.Join(c.emptySpools(), c.disks.emptyTable())
}
