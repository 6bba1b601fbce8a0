package edits

import (
	"encoding/json"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// jsonProposal is a proposal. Its payload and its diff are there where one is shown.
type jsonProposal struct {
	ID           int64           `json:"proposal"`
	State        string          `json:"state"`
	DeadLetter   string          `json:"dead_letter"`
	Members      []string        `json:"members"`
	Retry        bool            `json:"retry"`
	By           string          `json:"by"`
	Why          string          `json:"why"`
	Login        string          `json:"login"`
	Vouched      bool            `json:"vouched"` // by was named by the API of a desk
	CreatedAt    *time.Time      `json:"created_at"`
	ExpiresAt    *time.Time      `json:"expires_at"`
	DecidedBy    string          `json:"decided_by,omitempty"`
	DecidedWhy   string          `json:"decided_why,omitempty"`
	DecidedLogin string          `json:"decided_login,omitempty"`
	DecidedAt    *time.Time      `json:"decided_at,omitempty"`
	Diff         string          `json:"diff,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	Base64       []byte          `json:"payload_base64,omitempty"`
}

func proposalOf(p ledger.Proposal) jsonProposal {
	out := jsonProposal{
		ID: p.ID, State: string(p.State), DeadLetter: p.LetterID, Members: append([]string{}, p.Members...), Retry: p.Retry, By: p.By, Why: p.Why, Login: p.Login, Vouched: p.Vouched,
		CreatedAt: frame.UTC(p.CreatedAt), ExpiresAt: frame.UTC(p.ExpiresAt), DecidedBy: p.Decided.By, DecidedWhy: p.Decided.Why, DecidedLogin: p.Decided.Login, DecidedAt: frame.UTC(p.Decided.At),
	}
	if term.IsJSON(p.Value) {
		out.Payload = p.Value
	} else {
		out.Base64 = p.Value
	}
	return out
}
