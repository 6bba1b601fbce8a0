package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// sent returns a payload as text if it is text, else for base64.
func sent(value []byte) (text *string, bytes []byte) {
	if utf8.Valid(value) {
		t := string(value)
		return &t, nil
	}
	return nil, value
}

// Edit gives a dead letter another payload. The desk makes the difference for the audit itself, and has its own lease.
func (b Book) Edit(ctx context.Context, id string, seen ledger.Version, value []byte, _ string, lease time.Duration, by ledger.Actor) error {
	if err := b.by(ctx, by); err != nil {
		return err
	}
	text, bytes := sent(value)
	var moved api.Moved
	return ofLetter(b.comparing(string(seen), func(seen string) error {
		return b.client.ask(ctx, request{
			method: http.MethodPut, path: "/dead-letters/" + url.PathEscape(id) + "/payload", body: api.EditRequest{Payload: text, Base64: bytes, Reason: by.Why, Retry: lease > 0, Seen: seen},
		}, &moved)
	}))
}

// comparing asks with the payload that was seen. An older desk refuses that word, and is asked without it. It does not know the word,
// so its answer has … in its place.
func (b Book) comparing(seen string, ask func(seen string) error) error {
	err := ask(seen)
	if seen != "" && faultAt(err, "body.…") {
		err = ask("")
	}
	return err
}

// Touched asks what another payload would change, and if it needs a second person.
func (b Book) Touched(ctx context.Context, id string, value []byte) (members []string, second bool, err error) {
	text, bytes := sent(value)
	var out api.Touched
	err = b.client.ask(ctx, post("/dead-letters/"+url.PathEscape(id)+"/touches", api.TouchRequest{Payload: text, Base64: bytes}), &out)
	return out.Members, out.Second, ofLetter(err)
}

// Propose proposes an edit. The desk compares with the payload that the dead letter has now.
func (b Book) Propose(ctx context.Context, d ledger.Draft, by ledger.Actor) (p ledger.Proposal, err error) {
	if err := b.by(ctx, by); err != nil {
		return p, err
	}
	text, bytes := sent(d.Value)
	err = b.comparing(string(ledger.VersionOf(d.Before)), func(seen string) (err error) {
		p, err = b.proposal(ctx, "/dead-letters/"+url.PathEscape(d.LetterID)+"/proposals", api.ProposalRequest{Payload: text, Base64: bytes, Reason: by.Why, Retry: d.Retry, Seen: seen})
		return err
	})
	return p, err
}

// Approve approves a proposal. The desk makes the difference for the audit itself, and has its own lease.
func (b Book) Approve(ctx context.Context, id int64, _ string, _ time.Duration, by ledger.Actor) (ledger.Proposal, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Proposal{}, err
	}
	return b.proposal(ctx, "/proposals/"+strconv.FormatInt(id, 10)+"/approve", api.RetryRequest{Reason: by.Why})
}

// Reject rejects a proposal.
func (b Book) Reject(ctx context.Context, id int64, by ledger.Actor) (ledger.Proposal, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Proposal{}, err
	}
	return b.proposal(ctx, "/proposals/"+strconv.FormatInt(id, 10)+"/reject", api.RetryRequest{Reason: by.Why})
}

func (b Book) proposal(ctx context.Context, path string, body any) (ledger.Proposal, error) {
	var p api.Proposal
	err := b.client.ask(ctx, post(path, body), &p)
	return proposalOf(p), ofLetter(err)
}

// Proposal asks for a proposal with its payload. The desk logs that look.
func (b Book) Proposal(ctx context.Context, id int64) (ledger.Proposal, error) {
	var p api.ProposalPayload
	if err := b.client.ask(ctx, get("/proposals/"+strconv.FormatInt(id, 10), nil), &p); err != nil {
		return ledger.Proposal{}, ofLetter(err)
	}
	out := proposalOf(p.Proposal)
	out.Value = bytesOf(p.Value)
	return out, nil
}

// ListProposals asks for the newest proposals that a query chooses.
func (b Book) ListProposals(ctx context.Context, chosen ledger.ProposalQuery, n int) ([]ledger.Proposal, error) {
	q := numbered(chosen.Before, n)
	if chosen.All {
		q.Set("all", flag)
	}
	if chosen.LetterID != "" {
		q.Set("dead_letter", chosen.LetterID)
	}
	var list api.ProposalList
	if err := b.client.ask(ctx, get("/proposals", q), &list); err != nil {
		return nil, unpaged(err)
	}
	var out []ledger.Proposal
	for _, p := range list.Proposals {
		out = append(out, proposalOf(p))
	}
	return out, nil
}

func proposalOf(p api.Proposal) ledger.Proposal {
	return ledger.Proposal{
		ID: p.ID, LetterID: p.DeadLetter, State: p.State, Members: p.Members, Retry: p.Retry, By: p.By, Why: p.Why, Vouched: p.Vouched, Login: p.Login, CreatedAt: p.CreatedAt,
		ExpiresAt: p.ExpiresAt, Decided: ledger.Decided{By: p.DecidedBy, Why: p.DecidedWhy, Login: p.DecidedLog, At: at(p.DecidedAt)},
	}
}
