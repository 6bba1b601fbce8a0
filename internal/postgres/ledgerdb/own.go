package ledgerdb

import (
	"errors"

	"docket/internal/desk/ledger"
)

// isOwn says that an error is one that callers of the ledger decide by, and not the database's.
func isOwn(err error) bool {
	var refused *ledger.RefusedError
	var invalid *ledger.InvalidError
	var second *ledger.ProposalError
	var exists *ledger.RuleExistsError
	var edited *ledger.EditedError
	return errors.As(err, &refused) || errors.As(err, &invalid) || errors.As(err, &second) || errors.As(err, &exists) || errors.As(err, &edited) || errors.Is(err, ledger.ErrBadPage) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrAmbiguous) || errors.Is(err, ledger.ErrLost)
}
