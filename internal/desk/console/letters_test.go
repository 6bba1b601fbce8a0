package console_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/console"
	"docket/internal/desk/ledger"
)

func certified(name string, verified bool) *tls.ConnectionState {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: noon.AddDate(10, 0, 0)}
	s := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
	if verified {
		s.VerifiedChains = [][]*x509.Certificate{{c}}
	}
	return s
}

var sealedForm = regexp.MustCompile(`name="dry_run" value="([^"]+)"`)

func sealedIn(t *testing.T, body string) string {
	t.Helper()
	m := sealedForm.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("there is no dry run in %s", body)
	}
	return m[1]
}

func TestRetry_TakesTheFrozenFilterAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	w.clock.pass(time.Second)
	a := b.post(t, group+"/dry-run", nil)
	if a.code != http.StatusOK || !strings.Contains(a.body, "Dry run of 5 letters") {
		t.Fatalf("%d %s", a.code, a.body)
	}
	late := w.book.letters[0]
	late.ID, late.FailedAt = letterID(99), noon.Add(time.Minute)
	w.book.letters = append(w.book.letters, late)
	w.clock.pass(5 * time.Minute)
	a = b.post(t, group+"/retry", url.Values{"dry_run": {sealedIn(t, a.body)}, "reason": {"constraint is fixed"}, "rate": {"10"}, "fingerprint": {"ffff"}, "limit": {"100000"}})
	if a.code != http.StatusSeeOther || a.header.Get("Location") != "/jobs/1" {
		t.Fatalf("%d %v %s", a.code, a.header, a.body)
	}
	j := w.book.jobs[0]
	if j.Limit != 5 || j.Filter.Fingerprint != late.Fingerprint || !j.Filter.To.Equal(noon.Add(time.Second)) || len(j.Filter.States) != 2 || j.Operator != "olga" || j.Rate != 10 || j.Act != ledger.Retried {
		t.Errorf("the job is %+v", j)
	}
	if w.tries.asked[0].To != j.Filter.To || w.tries.asked[0].Fingerprint != j.Filter.Fingerprint {
		t.Errorf("tried was %+v", w.tries.asked[0])
	}
	for range 2 { // it is there after a reload, and in another browser
		if a := w.as(t, "viewer").get(t, "/jobs/1"); a.code != http.StatusOK || !strings.Contains(a.body, "constraint is fixed") {
			t.Errorf("%d", a.code)
		}
	}
}

func TestRetry_NeedsItsOwnDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, other := w.as(t, "operator"), w.as(t, "admin")
	fp := w.book.letters[0].Fingerprint
	group := "/dead-letters/groups/" + fp
	w.clock.pass(time.Second)
	sealed := sealedIn(t, b.post(t, group+"/dry-run", nil).body)
	refused := func(name string, b *browser, path, sealed string) {
		t.Helper()
		if a := b.post(t, path+"/retry", url.Values{"dry_run": {sealed}, "reason": {"r"}}); a.code != http.StatusConflict || len(w.book.jobs) > 0 {
			t.Errorf("%s: %d", name, a.code)
		}
	}
	refused("without a dry run", b, group, "")
	refused("of another person", other, group, sealed)
	refused("of another session", w.as(t, "operator"), group, sealed)
	refused("of another group", b, "/dead-letters/groups/"+strings.Repeat("0", len(fp)), sealed)
	flipped := []byte(sealed)
	flipped[len(flipped)-2] ^= 1
	refused("changed", b, group, string(flipped))
	w.clock.pass(15 * time.Minute)
	refused("too old", b, group, sealed)
}

func TestRetry_OfManyNeedsAnAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 1500 {
		e := w.book.letters[0]
		e.ID = letterID(1000 + i)
		w.book.letters = append(w.book.letters, e)
	}
	w.clock.pass(time.Hour)
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	a := w.as(t, "operator").post(t, group+"/dry-run", nil)
	if a.code != http.StatusOK || !strings.Contains(a.body, "an admin is needed") || sealedForm.MatchString(a.body) {
		t.Errorf("%d %s", a.code, a.body)
	}
	b := w.as(t, "admin")
	a = b.post(t, group+"/dry-run", nil)
	if !strings.Contains(a.body, "Not all were tried") {
		t.Error("the page does not say that not all were tried")
	}
	if a := b.post(t, group+"/retry", url.Values{"dry_run": {sealedIn(t, a.body)}, "reason": {"r"}}); a.code != http.StatusSeeOther || w.book.jobs[0].Limit != 1505 {
		t.Errorf("%d %+v", a.code, w.book.jobs)
	}
}

func TestDryRun_NothingOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range w.book.letters {
		w.book.letters[i].State = ledger.Resolved
	}
	a := w.as(t, "operator").post(t, "/dead-letters/groups/"+w.book.letters[0].Fingerprint+"/dry-run", nil)
	if a.code != http.StatusOK || !strings.Contains(a.body, "None is open") || len(w.tries.asked) > 0 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestResolve_WithANote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.as(t, "operator").post(t, "/dead-letters/"+letterID(1)+"/resolve", url.Values{"note": {"sent by hand"}})
	if e := w.book.letters[1]; a.code != http.StatusSeeOther || a.header.Get("Location") != "/dead-letters/"+letterID(1) || e.State != ledger.Resolved || e.ChangedBy != "olga" || e.Why != "sent by hand" {
		t.Errorf("%d %+v", a.code, e)
	}
}

func TestDeadLetters_LeftInKafka(t *testing.T) {
	t.Parallel()
	const all, more = "offsets 999 to 999, of edge-7", "<code>docket dlq surplus</code> lists all"
	for n, wanted := range map[int][]string{0: {"!Some are not in the ledger", "!" + more}, 1000: {all, "!" + more}, 1001: {all, more}} {
		w := newWorld(t)
		for i := range int64(n) {
			w.book.left = append(w.book.left, ledger.Surplus{ID: i + 1, Topic: "decision-logs-dlq", Client: "edge-7", First: i, Next: i, Last: i, Letters: 1, LeftAt: noon, State: ledger.SurplusOpen})
		}
		wants(t, w.as(t, "viewer").get(t, "/dead-letters"), http.StatusOK, wanted...)
	}
}

func TestJob_StoppedAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.jobs = []ledger.Job{{ID: 1, State: ledger.JobRunning, Act: ledger.Retried, Limit: 5, Matched: 5, Sent: 2, Stored: 1, Operator: "olga", Reason: "r", CreatedAt: noon}}
	b := w.as(t, "operator")
	if a := b.get(t, "/jobs/1"); !strings.Contains(a.body, `hx-trigger="every 5s"`) || !strings.Contains(a.body, "/jobs/1/stop") {
		t.Error(a.body)
	}
	if a := b.post(t, "/jobs/1/stop", url.Values{"reason": {"wait"}}); a.code != http.StatusSeeOther || w.book.jobs[0].State != ledger.JobStopped {
		t.Error(a.code, w.book.jobs)
	}
	if a := b.post(t, "/jobs/1/resume", url.Values{"reason": {"go on"}}); a.code != http.StatusSeeOther || w.book.jobs[0].State != ledger.JobWaiting {
		t.Error(a.code, w.book.jobs)
	}
}

func TestPayload_OnRequestAndNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	if a := b.get(t, "/dead-letters/"+letterID(0)); strings.Contains(a.body, marker) || strings.Contains(w.log.String(), "payload read") {
		t.Error("a payload is shown unasked")
	}
	if a := b.get(t, "/dead-letters/"+letterID(0)+"?payload=1"); !strings.Contains(a.body, marker) || !strings.Contains(w.log.String(), `"operator":"olga","dead_letter":"`+letterID(0)+`","message":"payload read"`) {
		t.Error("the payload is missing, or the look is not noted:", w.log.String())
	}
	for _, role := range []string{"viewer", "auditor"} {
		if a := w.as(t, role).get(t, "/dead-letters/"+letterID(0)+"?payload=1"); a.code != http.StatusForbidden || strings.Contains(a.body, marker) {
			t.Errorf("%s: %d", role, a.code)
		}
	}
	if strings.Contains(w.log.String(), marker) {
		t.Error("the log has a payload")
	}
}

// TestPayload_BrokenIsShownWhole: the text behind the first value may be the reason of the failure.
func TestPayload_BrokenIsShownWhole(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"ok":1} garbage`, `{"a":1}{"b":2}`, `true story`, `{"a":1`} {
		if tree, text := console.ShownPayload(raw); tree || text != raw {
			t.Errorf("%s is shown as %q", raw, text)
		}
	}
	if tree, _ := console.ShownPayload(`{"ok":1}`); !tree {
		t.Error("an object is not shown as a tree")
	}
}
