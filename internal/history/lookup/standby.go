package lookup

import "context"

// StandbyBehind says that the lack of a row in this database proves nothing.
const StandbyBehind = "this server is a standby, which may be behind: name the primary in DOCKET_DATABASE_URL"

// standby reports whether the database of the rows and the ledger is a standby.
func (s *search) standby(ctx context.Context) (bool, error) {
	if s.look.Standby == nil {
		return false, nil
	}
	return s.look.Standby(ctx)
}
