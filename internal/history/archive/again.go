package archive

import (
	"context"
	"encoding/json"
	"time"
)

// Identity names a row: a decision as it was stored at one time. A decision that was stored again has another one.
type Identity struct {
	ID           string
	Time, Stored int64 // microseconds since 1970
}

// identified are the members of a line that name its row.
type identified struct {
	ID     string    `json:"decision_id"`
	Time   time.Time `json:"ts"`
	Stored time.Time `json:"stored_at"`
}

// again returns a function that deletes decisions of a day that an archive has from another time of storing. An archive that
// has the row itself proves nothing: it was made before the row was counted. A broken archive is left out.
func (c *Carrier) again(day Day) func(ctx context.Context, late map[Identity]bool) error {
	return func(ctx context.Context, late map[Identity]bool) error {
		all, err := Whole(ctx, c.Shelf, c.Table.Name(), &day)
		if err := notBroken(err); err != nil {
			return err
		}
		type decision struct {
			id string
			at int64
		}
		stored := make(map[decision]int64, len(late))
		for of := range late {
			stored[decision{of.ID, of.Time}] = of.Stored
		}
		for _, m := range all {
			err := Check(ctx, c.Shelf, m, func(line []byte) error {
				var row identified
				if err := json.Unmarshal(line, &row); err != nil {
					return &BrokenError{m.Name(), "a row has no identity"}
				}
				at := row.Time.UnixMicro()
				if when, ok := stored[decision{row.ID, at}]; ok && when != row.Stored.UnixMicro() {
					delete(late, Identity{row.ID, at, when})
				}
				return nil
			})
			if err := notBroken(err); err != nil {
				return err
			}
		}
		return nil
	}
}
