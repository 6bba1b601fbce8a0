package ledgerdb

import (
	"context"
	"crypto/sha256"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Proposals = (*Ledger)(nil)

// proposalSQL are the columns of proposals p of letters d, without what may be personal data.
const proposalSQL = `p.proposal_id, p.dead_letter_id, CASE WHEN p.state <> 'OPEN' THEN p.state WHEN p.expires_at <= clock_timestamp() THEN 'EXPIRED'
		WHEN d.state <> p.letter_state OR sha256(d.value) IS DISTINCT FROM p.value_hash THEN 'VOID' ELSE 'OPEN' END AS stands,
	p.members, p.retry, p.proposed_by, p.why, p.vouched, p.login::text, p.created_at, p.expires_at,
	coalesce(p.decided_by, ''), coalesce(p.decided_why, ''), coalesce(p.decided_login::text, ''), p.decided_at`

func scanProposal(r pgx.CollectableRow, more ...any) (p ledger.Proposal, err error) {
	var decided *time.Time
	err = r.Scan(append([]any{
		&p.ID, &p.LetterID, &p.State, &p.Members, &p.Retry, &p.By, &p.Why, &p.Vouched, &p.Login, &p.CreatedAt, &p.ExpiresAt,
		&p.Decided.By, &p.Decided.Why, &p.Decided.Login, &decided,
	}, more...)...)
	p.CreatedAt, p.ExpiresAt, p.Decided.At = p.CreatedAt.UTC(), p.ExpiresAt.UTC(), utc(decided)
	return p, err
}

// proposal reads one whole.
func proposal(ctx context.Context, tx pgx.Tx, id int64) (ledger.Proposal, error) {
	rows, err := tx.Query(ctx, `SELECT `+proposalSQL+`, p.value FROM dead_letter_proposals p JOIN dead_letters d USING (dead_letter_id) WHERE p.proposal_id = $1`, id)
	if err != nil {
		return ledger.Proposal{}, err
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p ledger.Proposal, err error) {
		var value []byte
		p, err = scanProposal(r, &value)
		p.Value = value
		return p, err
	})
	if err == nil && len(found) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Proposal{}, err
	}
	return found[0], nil
}

// Touched implements [ledger.Proposals].
func (l *Ledger) Touched(ctx context.Context, id string, value []byte) (members []string, second bool, err error) {
	err = l.within(ctx, "compare the payload of a dead letter", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT dead_letters_touched(value, $2::bytea), dead_letters_four_eyes() FROM dead_letters WHERE dead_letter_id = $1::text`, db.Text(id), value)
		if err != nil {
			return err
		}
		members, second = nil, false
		var rule bool
		tag, err := pgx.ForEachRow(rows, []any{&members, &rule}, func() error {
			second = rule && len(members) > 0
			return nil
		})
		if err == nil && tag.RowsAffected() == 0 {
			err = ledger.ErrNotFound
		}
		return err
	})
	return members, second, err
}

// Propose implements [ledger.Proposals].
func (l *Ledger) Propose(ctx context.Context, d ledger.Draft, by ledger.Actor) (p ledger.Proposal, err error) {
	return l.onProposal(ctx, "propose an edit", 0, by, func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
		if err := lockFree(ctx, tx, d.LetterID); err != nil {
			return 0, err
		}
		err = tx.QueryRow(ctx, `SELECT dead_letters_propose($1::text, $2::bytea, $3::bytea, $4::boolean, $5::text, $6::text, $7::boolean)`,
			d.LetterID, hashOf(d.Before), d.Value, d.Retry, db.Text(by.Name), db.Text(by.Why), by.Vouched).Scan(&id)
		return id, err
	})
}

// hashOf is the SHA-256 of a value as the server has it: of none there is none.
func hashOf(value []byte) []byte {
	if value == nil {
		return nil
	}
	sum := sha256.Sum256(value)
	return sum[:]
}

// Approve implements [ledger.Proposals].
func (l *Ledger) Approve(ctx context.Context, id int64, diff string, lease time.Duration, by ledger.Actor) (ledger.Proposal, error) {
	if lease <= 0 {
		return ledger.Proposal{}, ledger.ErrNoLease
	}
	return l.onProposal(ctx, "approve an edit", id, by, func(ctx context.Context, tx pgx.Tx) (int64, error) {
		p, err := proposal(ctx, tx, id)
		if err != nil {
			return 0, err
		}
		was, err := valueNow(ctx, tx, p.LetterID)
		if err != nil {
			return 0, err
		}
		path, decisionID, decided := saysOf(p.Value)
		if _, err := tx.Exec(ctx, `SELECT dead_letters_approve($1::bigint, $2::text, $3::text, $4::text, $5::timestamptz, $6::text, $7::text, $8::boolean)`,
			id, db.Text(diff), path, decisionID, decided, db.Text(by.Name), db.Text(by.Why), by.Vouched); err != nil {
			return id, err
		}
		if err := editKept(ctx, tx, p.LetterID, was, hashOf(p.Value)); err != nil || !p.Retry {
			return id, err
		}
		_, err = retry(ctx, tx, []string{p.LetterID}, lease, by)
		return id, err
	})
}

// Reject implements [ledger.Proposals].
func (l *Ledger) Reject(ctx context.Context, id int64, by ledger.Actor) (ledger.Proposal, error) {
	return l.onProposal(ctx, "reject an edit", id, by, func(ctx context.Context, tx pgx.Tx) (int64, error) {
		if _, err := proposal(ctx, tx, id); err != nil {
			return 0, err
		}
		_, err := tx.Exec(ctx, `SELECT dead_letters_reject($1::bigint, $2::text, $3::text, $4::boolean)`, id, db.Text(by.Name), db.Text(by.Why), by.Vouched)
		return id, err
	})
}

// onProposal does a step and gives the proposal as it is then. The functions of the database say by a constraint why they refuse.
func (l *Ledger) onProposal(ctx context.Context, act string, id int64, by ledger.Actor, do func(context.Context, pgx.Tx) (int64, error)) (p ledger.Proposal, err error) {
	switch {
	case by.Name == "":
		return p, ledger.ErrNobody
	case by.Why == "":
		return p, ledger.ErrNoReason
	}
	err = l.within(ctx, act, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		done, err := do(ctx, tx)
		if err == nil {
			p, err = proposal(ctx, tx, done)
		}
		return err
	})
	if why, is := strings.CutPrefix(violated(err), "dead_letter_proposals_"); is {
		return ledger.Proposal{}, &ledger.ProposalError{ID: id, Because: ledger.Because(why)}
	}
	return p, err
}

// violated names the constraint that a change was refused for; empty: none.
func violated(err error) string {
	if said, ok := db.AsServerError(err); ok && said.SQLState() == pgerrcode.CheckViolation {
		return said.ConstraintName()
	}
	return ""
}

// Proposal implements [ledger.Proposals].
func (l *Ledger) Proposal(ctx context.Context, id int64) (p ledger.Proposal, err error) {
	err = l.look(ctx, "show a proposal", func(ctx context.Context, tx pgx.Tx) (err error) {
		p, err = proposal(ctx, tx, id)
		return err
	})
	return p, err
}

const (
	proposalsSQL = `SELECT q.* FROM (SELECT ` + proposalSQL + ` FROM dead_letter_proposals p JOIN dead_letters d USING (dead_letter_id)
		WHERE ($1::boolean OR p.state = 'OPEN') AND p.proposal_id < $2::bigint`
	newestProposalsSQL = `) q WHERE $1::boolean OR q.stands = 'OPEN' ORDER BY q.proposal_id DESC LIMIT $3::int`
)

// ListProposals implements [ledger.Proposals].
func (l *Ledger) ListProposals(ctx context.Context, q ledger.ProposalQuery, n int) (list []ledger.Proposal, err error) {
	if q.Before <= 0 {
		q.Before = math.MaxInt64
	}
	err = l.look(ctx, "list proposals", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := proposalsOf(ctx, tx, q, max(n, 0))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (ledger.Proposal, error) { return scanProposal(r) })
		return err
	})
	return list, err
}

func proposalsOf(ctx context.Context, tx pgx.Tx, q ledger.ProposalQuery, n int) (pgx.Rows, error) {
	if q.LetterID == "" {
		return tx.Query(ctx, proposalsSQL+newestProposalsSQL, q.All, q.Before, n)
	}
	return tx.Query(ctx, proposalsSQL+` AND p.dead_letter_id = $4::text`+newestProposalsSQL, q.All, q.Before, n, db.Text(q.LetterID))
}
