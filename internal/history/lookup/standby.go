package lookup

import "context"

// StandbyBehind says that the lack of a row in this database proves nothing.
const StandbyBehind = "this server is a standby, which may be behind: name the primary in DOCKET_DATABASE_URL"

// watched returns the context for questions to the database of the rows and the ledger.
func (s *search) watched(ctx context.Context) context.Context {
	if s.look.Standby != nil {
		ctx, s.asked = s.look.Standby(ctx)
	}
	return ctx
}

// standby reports whether one of these questions went to a standby.
func (s *search) standby() bool { return s.asked != nil && s.asked() }
