package api_test

import (
	"context"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// audited is a ledger whose audit has payloads.
type audited struct{ api.Book }

func (audited) Audits(context.Context, ledger.AuditQuery) (ledger.Audits, error) {
	return ledger.Audits{Lines: []ledger.Audit{{ID: 1, By: "mara", Original: []byte(marker), Diff: marker, Was: []byte(marker)}}}, nil
}

func TestAudit_HasNoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Book = audited{p.Book} })
	for role, fine := range map[api.Role]bool{api.Nobody: false, api.Viewer: true, api.Admin: true} {
		found, err := w.handler.Inside().Audit(t.Context(), api.Caller{Name: "vera", Role: role}, ledger.AuditQuery{})
		if (err == nil) != fine {
			t.Errorf("%v: %v", role, err)
		}
		for _, a := range found.Lines {
			if a.Original != nil || a.Diff != "" || a.Was != nil || a.By != "mara" {
				t.Errorf("%v: %+v", role, a)
			}
		}
	}
	w = newWorld(t)
	if w.handler.Inside().Has("list-audit") || w.handler.Inside().Has("show-calendar") {
		t.Error("a ledger without an audit has one")
	}
}
