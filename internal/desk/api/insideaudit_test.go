package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
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
	w = newWorld(t, func(_ *api.Config, p *api.Ports) { p.Book, p.Calendar = struct{ api.Book }{p.Book}, nil })
	if w.handler.Inside().Has("list-audit") || w.handler.Inside().Has("show-calendar") {
		t.Error("a ledger without an audit has one")
	}
}

func TestAudit_OverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, want := range map[string]int{
		"": 1, "?actor=rule+3+of+mara": 1, "?actor=rule+3": 0, "?act=closed": 1, "?act=retried&act=closed": 1, "?act=retried": 0, "?before=7": 0, "?before=8": 1, "?after=7": 0, "?since=2026-03-01T12:00:00Z": 1, "?until=2026-03-01T12:00:00Z": 0,
		"?of=groups": 1, "?of=groups&act=rule_added&actor=mara": 1, "?of=groups&act=rule_removed": 0, "?of=groups&group=" + fingerprint: 1,
	} {
		var list api.AuditList
		a := w.ask(t, "viewer", http.MethodGet, "/audit"+query, "")
		a.into(t, &list)
		if len(list.Lines) != want || strings.Contains(a.body, marker) || want > 0 && (list.Next != 7 || list.Lines[0].Changed == strings.Contains(query, "groups")) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for _, query := range []string{"act=danced", "act=rule_added", "of=groups&act=closed", "group=" + fingerprint, "before=1&after=1", "before=0", "since=soon", "since=1h&until=2h", "actor=%00", "limit=501", "of=all"} {
		if a := w.ask(t, "viewer", http.MethodGet, "/audit?"+query, ""); a.code != http.StatusUnprocessableEntity && a.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
}

func TestCalendar_OverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []string
	before := ""
	for {
		var page api.ArchiveDays
		w.ask(t, "viewer", http.MethodGet, "/archive?limit=2"+before, "").into(t, &page)
		for _, d := range page.Days {
			got = append(got, fmt.Sprint(d.Day, " ", d.State, " ", d.Rows != nil, d.Counted != nil, d.Archived != nil, d.Unfinished))
		}
		if len(page.Lacks) != 1 || len(page.Shared) != 1 || page.Shared[0].Rows != nil || page.Where == "" {
			t.Errorf("%+v", page)
		}
		if page.Next == "" {
			break
		}
		before = "&before=" + page.Next
	}
	if want := "[2026-02-28 hot true true false [] 2026-02-27 hot, and archived false false true [decision_logs-2026-02-27-002-3f9a2c-00000000] 2026-02-26 archived true true true []]"; fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	if a := w.ask(t, "viewer", http.MethodGet, "/archive?before=2026-02-31", ""); a.code != http.StatusUnprocessableEntity {
		t.Errorf("no day: %d", a.code)
	}
}
