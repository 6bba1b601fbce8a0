package ledgermodel

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"docket/internal/desk/ledger"
)

// proposal is an edit that waits for a second person, or had one.
type proposal struct {
	ledger.Proposal
	before []byte
	state  ledger.State // of its letter
}

// proposalAge limits the age of a proposal that can be approved.
const proposalAge = 7 * 24 * time.Hour

// FourEyes makes edits of evidence need two persons.
func (b *Book) FourEyes() *Book {
	b.fourEyes = true
	return b
}

// Touched implements [ledger.Proposals].
func (b *Book) Touched(ctx context.Context, id string, value []byte) ([]string, bool, error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	e := b.letters[id]
	if e == nil {
		return nil, false, ledger.ErrNotFound
	}
	members := touched(e.Value, value)
	return members, b.fourEyes && len(members) > 0, nil
}

// Propose implements [ledger.Proposals].
func (b *Book) Propose(ctx context.Context, d ledger.Draft, by ledger.Actor) (ledger.Proposal, error) {
	if by.Name == "" {
		return ledger.Proposal{}, ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Proposal{}, err
	}
	defer end()
	outcomes, free := b.free([]string{d.LetterID})
	if err := outcomes[0].Err; err != nil {
		return ledger.Proposal{}, err
	}
	e := free[0]
	if !sameValue(e.Value, d.Before) {
		return ledger.Proposal{}, &ledger.ProposalError{Because: ledger.BecauseVoid}
	}
	b.lastProposal++
	p := &proposal{before: d.Before, state: e.State, Proposal: ledger.Proposal{
		ID: b.lastProposal, LetterID: e.ID, State: ledger.ProposalOpen, Members: touched(e.Value, d.Value), Retry: d.Retry, Value: d.Value,
		By: by.Name, Why: by.Why, Vouched: by.Vouched, CreatedAt: now, ExpiresAt: now.Add(proposalAge),
	}}
	b.proposals[p.ID] = p
	b.noted(e, ledger.Proposed, p, by, now)
	return b.shown(p, now), nil
}

// noted adds a line about a proposal.
func (b *Book) noted(e *ledger.Entry, act ledger.Act, p *proposal, by ledger.Actor, now time.Time) {
	b.line(e, act, e.State, e.State, ledger.Actor{Name: by.Name, Why: fmt.Sprintf("proposal %d: %s", p.ID, by.Why)}, now)
}

// Approve implements [ledger.Proposals]. All callers who are not vouched for have the same login.
func (b *Book) Approve(ctx context.Context, id int64, diff string, lease time.Duration, by ledger.Actor) (ledger.Proposal, error) {
	return b.decide(ctx, id, by, func(p *proposal, e *ledger.Entry, now time.Time) error {
		if why := p.refuses(e, by, now); why != "" {
			return &ledger.ProposalError{ID: id, Because: why}
		}
		p.State = ledger.ProposalApproved
		b.noted(e, ledger.Approved, p, by, now)
		was := e.Value
		e.Value, e.Edited = p.Value, true
		b.move(e, e.State, ledger.Edited, ledger.Actor{Name: p.By, Why: p.Why}, now)
		line := &b.lines[len(b.lines)-1]
		line.Original, line.Diff = was, diff
		if p.Retry {
			b.retry([]*ledger.Entry{e}, lease, by, now)
		}
		return nil
	})
}

// refuses returns why by may not approve p, or "".
func (p *proposal) refuses(e *ledger.Entry, by ledger.Actor, now time.Time) ledger.Because {
	switch {
	case !p.ExpiresAt.After(now):
		return ledger.BecauseExpired
	case p.isVoid(e):
		return ledger.BecauseVoid
	case by.Vouched != p.Vouched:
		return ledger.BecauseOtherWay
	case ledger.SamePerson(by.Name, p.By):
		return ledger.BecauseName
	case !by.Vouched:
		return ledger.BecauseLogin
	}
	return ""
}

func (p *proposal) isVoid(e *ledger.Entry) bool {
	return e.State != p.state || !sameValue(e.Value, p.before)
}

// Reject implements [ledger.Proposals].
func (b *Book) Reject(ctx context.Context, id int64, by ledger.Actor) (ledger.Proposal, error) {
	return b.decide(ctx, id, by, func(p *proposal, e *ledger.Entry, now time.Time) error {
		p.State = ledger.ProposalRejected
		b.noted(e, ledger.Rejected, p, by, now)
		return nil
	})
}

func (b *Book) decide(ctx context.Context, id int64, by ledger.Actor, do func(*proposal, *ledger.Entry, time.Time) error) (ledger.Proposal, error) {
	if by.Name == "" {
		return ledger.Proposal{}, ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Proposal{}, err
	}
	defer end()
	p := b.proposals[id]
	switch {
	case p == nil:
		return ledger.Proposal{}, ledger.ErrNotFound
	case p.State != ledger.ProposalOpen:
		return ledger.Proposal{}, &ledger.ProposalError{ID: id, Because: ledger.BecauseEnded}
	}
	if err := do(p, b.letters[p.LetterID], now); err != nil {
		return ledger.Proposal{}, err
	}
	p.Decided = ledger.Decided{By: by.Name, Why: by.Why, At: now}
	return b.shown(p, now), nil
}

// shown returns a proposal in its present state.
func (b *Book) shown(p *proposal, now time.Time) ledger.Proposal {
	s := p.Proposal
	if s.State == ledger.ProposalOpen && p.isVoid(b.letters[p.LetterID]) {
		s.State = ledger.ProposalVoid
	}
	if p.State == ledger.ProposalOpen && !p.ExpiresAt.After(now) {
		s.State = ledger.ProposalExpired
	}
	s.Value = bytes.Clone(s.Value)
	return s
}

// Proposal implements [ledger.Proposals].
func (b *Book) Proposal(ctx context.Context, id int64) (ledger.Proposal, error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Proposal{}, err
	}
	defer end()
	if p := b.proposals[id]; p != nil {
		return b.shown(p, now), nil
	}
	return ledger.Proposal{}, ledger.ErrNotFound
}

// ListProposals implements [ledger.Proposals].
func (b *Book) ListProposals(ctx context.Context, q ledger.ProposalQuery, n int) (list []ledger.Proposal, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range b.proposals {
		if q.LetterID != "" && p.LetterID != q.LetterID || q.Before > 0 && p.ID >= q.Before {
			continue
		}
		if s := b.shown(p, now); q.All || s.State == ledger.ProposalOpen {
			s.Value = nil
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b ledger.Proposal) int { return int(b.ID - a.ID) })
	return list[:min(n, len(list))], nil
}
