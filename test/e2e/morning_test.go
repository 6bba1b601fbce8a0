//go:build integration

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
	"docket/sample/policies"
)

// morning is how an operator works with a desk: by its API, or by commands with --server.
type morning interface {
	// denied returns the ids of the denied decisions of the last hour.
	denied() ([]string, error)
	// why returns the reasons of a decision.
	why(id string) ([]string, error)
	// flips returns the changes of verdicts, each as path: was > is.
	flips() ([]string, error)
	// open returns the groups of open dead letters.
	open() ([]openGroup, error)
	// try tries the letters of a group without a change: how many would be stored, and how many would fail.
	try(fingerprint string) (stored, failed int, err error)
	// retry retries the letters of a group, and returns how many were stored in the end.
	retry(fingerprint, reason string) (stored int, err error)
	// acts returns who did something to letters.
	acts() ([]string, error)
}

type openGroup struct {
	Fingerprint, Constraint string
	Open                    int
}

// withOpen leaves out groups of which no letter is open.
func withOpen(groups []openGroup) []openGroup {
	return slices.DeleteFunc(groups, func(g openGroup) bool { return g.Open == 0 })
}

// TestMorning_ByCommandsAndByAPI is the morning of an operator that test/browser goes through in the console: a denial is
// found and explained, a bad migration fills the dead letters, and after its repair a retry empties them. Here it is done
// twice, without a login for the database.
func TestMorning_ByCommandsAndByAPI(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]func(s *system, server string) morning{
		"commands": func(s *system, server string) morning {
			remote := *s // with nothing but the desk and a token
			remote.env = []string{"HOME=" + t.TempDir(), "DOCKET_SERVER=" + server, "DOCKET_TOKEN=" + operatorToken}
			return commands{&remote}
		},
		"API": func(s *system, server string) morning { return webAPI{s.t, server + "/api/v1"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), deskEnv(t)...)
			uploads, api := freeAddr(t), freeAddr(t)
			s.collector(uploads)
			s.consumer()
			s.desk("DOCKET_DESK_API_ADDR="+api, "DOCKET_DESK_API_TOKENS=olga:operator:"+operatorToken, "DOCKET_STATES=true", "DOCKET_READER_SUBJECT=input:/user")
			opa := testenv.StartOPA(t, testenv.OPAOptions{Service: "http://" + uploads, Token: opaToken, Bundle: testenv.ServeBundle(t, "shop", policies.Files, "r1"), Status: true})
			goesBy(t, s, opa, by(s, "http://"+api))
		})
	}
}

const operatorToken = "planted-token-of-operator"

// goesBy is the morning.
func goesBy(t *testing.T, s *system, opa *testenv.OPA, m morning) {
	t.Helper()
	refund := func(amount int) string {
		said, err := opa.Ask(t.Context(), "shop/refund/decision", json.RawMessage(fmt.Sprintf(`{"user":"bob","amount":%d,"order":{"customer":"carol"}}`, amount)))
		if err != nil || said.ID == "" {
			t.Fatalf("OPA answered %+v, %v", said, err)
		}
		return said.ID
	}
	allowed := refund(20)
	eventually(t, patience, "the first decision is stored", func() error { // flips are in the order of storing
		if n := s.rows("decision_id = '" + allowed + "'"); n != 1 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	denied := refund(900)
	eventually(t, patience, "the denial is found, and nothing else", func() error {
		if all, err := m.denied(); err != nil || !slices.Equal(all, []string{denied}) {
			return fmt.Errorf("%v, %w", all, err)
		}
		return nil
	})
	if reasons, err := m.why(denied); err != nil || !slices.ContainsFunc(reasons, func(text string) bool { return strings.Contains(text, "a refund of 900 is above the limit of") }) {
		t.Errorf("the reasons are %q, %v", reasons, err)
	}
	eventually(t, patience, "the change of the verdict is told", func() error {
		if all, err := m.flips(); err != nil || !slices.Equal(all, []string{"shop/refund/decision: allowed > denied"}) {
			return fmt.Errorf("%q, %w", all, err)
		}
		return nil
	})

	s.exec("ALTER TABLE decision_logs ADD CONSTRAINT small_refunds CHECK (coalesce((raw#>>'{input,amount}')::numeric, 0) < 500) NOT VALID")
	const bad = 40
	for range bad {
		refund(700)
	}
	var group openGroup
	eventually(t, patience, "all letters are in one group", func() error {
		all, err := m.open()
		if err != nil || len(all) != 1 || all[0].Open != bad || all[0].Constraint != "small_refunds" {
			return fmt.Errorf("%+v, %w", all, err)
		}
		group = all[0]
		return nil
	})
	if stored, failed, err := m.try(group.Fingerprint); err != nil || stored != 0 || failed != bad {
		t.Errorf("on the broken table %d would be stored, %d would fail, %v", stored, failed, err)
	}
	s.exec("ALTER TABLE decision_logs DROP CONSTRAINT small_refunds")
	if stored, failed, err := m.try(group.Fingerprint); err != nil || stored != bad || failed != 0 {
		t.Errorf("on the repaired table %d would be stored, %d would fail, %v", stored, failed, err)
	}
	if stored, err := m.retry(group.Fingerprint, "the check is dropped"); err != nil || stored != bad {
		t.Errorf("%d were stored, %v", stored, err)
	}
	if all, err := m.open(); err != nil || len(all) != 0 {
		t.Errorf("groups that are left: %+v, %v", all, err)
	}
	if n := s.rows("true"); n != bad+2 {
		t.Errorf("%d rows of %d decisions", n, bad+2)
	}
	if by, err := m.acts(); err != nil || !slices.Contains(by, "olga") {
		t.Errorf("acts of %q, %v", by, err)
	}
}

// commands is a person with docket and a token.
type commands struct{ *system }

func (c commands) denied() (ids []string, err error) {
	var found denials
	_, err = c.tryDocket(&found, 0, "logs", "--verdict", "denied", "--since", "1h")
	return found.ids(), err
}

func (c commands) why(id string) ([]string, error) {
	var x explanation
	_, err := c.tryDocket(&x, 0, "why", id)
	return x.reasons(), err
}

func (c commands) flips() ([]string, error) {
	var all changes
	_, err := c.tryDocket(&all, 0, "flips", "--since", "1h")
	return all.texts(), err
}

func (c commands) open() ([]openGroup, error) {
	var list shownList[openGroup]
	_, err := c.tryDocket(&list, 0, "dlq", "groups")
	return withOpen(list.Entries), err
}

func (c commands) try(fingerprint string) (stored, failed int, err error) {
	var trial shownTrial
	args := []string{"dlq", "retry", "--fingerprint", fingerprint, "--dry-run"}
	if _, err = c.tryDocket(&trial, 0, args...); err != nil { // 1: some would fail
		_, err = c.tryDocket(&trial, 1, args...)
	}
	for _, f := range trial.StillFail {
		failed += f.Letters
	}
	return trial.Would, failed, err
}

func (c commands) retry(fingerprint, reason string) (int, error) {
	var job shownJob
	_, err := c.tryDocket(&job, 0, "dlq", "retry", "--fingerprint", fingerprint, "--limit", "1000", "--reason", reason, "--yes")
	return job.Stored, err
}

func (c commands) acts() (by []string, err error) {
	var list shownList[shownAudit]
	_, err = c.tryDocket(&list, 0, "dlq", "audit")
	for _, a := range list.Entries {
		by = append(by, a.By)
	}
	return by, err
}

// denials are decisions as both list them.
type denials struct {
	Decisions []struct {
		ID string `json:"decision_id"`
	}
}

func (d denials) ids() (ids []string) {
	for _, one := range d.Decisions {
		ids = append(ids, one.ID)
	}
	return ids
}

// changes are flips as both list them.
type changes struct {
	Flips []struct{ Path, Was, Verdict string }
}

func (c changes) texts() (texts []string) {
	for _, f := range c.Flips {
		texts = append(texts, f.Path+": "+f.Was+" > "+f.Verdict)
	}
	return texts
}

// explanation is the part of an answer to why that both have.
type explanation struct {
	Reasons []struct{ Text string }
}

func (x explanation) reasons() (texts []string) {
	for _, r := range x.Reasons {
		texts = append(texts, r.Text)
	}
	return texts
}

// webAPI is a program with a token.
type webAPI struct {
	t    *testing.T
	base string
}

// ask sends a request, and reads the answer into out. in is its body; nil: none.
func (a webAPI) ask(path string, in, out any) error {
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		method, body = http.MethodPost, bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %d %s, %w", path, answer.StatusCode, text, err)
	}
	return json.Unmarshal(text, out)
}

func (a webAPI) denied() (ids []string, err error) {
	var found denials
	err = a.ask("/decisions?"+url.Values{"verdict": {"denied"}, "since": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}.Encode(), nil, &found)
	return found.ids(), err
}

func (a webAPI) why(id string) ([]string, error) {
	var x explanation
	err := a.ask("/decisions/"+url.PathEscape(id)+"/why", nil, &x)
	return x.reasons(), err
}

func (a webAPI) flips() ([]string, error) {
	var all changes
	err := a.ask("/flips", nil, &all)
	return all.texts(), err
}

func (a webAPI) open() ([]openGroup, error) {
	var list struct{ Groups []openGroup }
	err := a.ask("/groups", nil, &list)
	return withOpen(list.Groups), err
}

func (a webAPI) try(fingerprint string) (stored, failed int, err error) {
	var said struct {
		Would int `json:"would_be_stored"`
		Fail  int `json:"would_fail"`
	}
	err = a.ask("/trials", map[string]any{"filter": map[string]any{"fingerprint": fingerprint}}, &said)
	return said.Would, said.Fail, err
}

func (a webAPI) retry(fingerprint, reason string) (int, error) {
	var job shownJob
	err := a.ask("/jobs", map[string]any{"act": "retry", "filter": map[string]any{"fingerprint": fingerprint}, "limit": 1000, "reason": reason}, &job)
	if err != nil {
		return 0, err
	}
	eventually(a.t, patience, "the job has ended", func() error {
		if err := a.ask(fmt.Sprintf("/jobs/%d", job.ID), nil, &job); err != nil || job.State != "DONE" {
			return fmt.Errorf("%+v, %w", job, err)
		}
		return nil
	})
	return job.Stored, nil
}

func (a webAPI) acts() (by []string, err error) {
	var list struct{ Lines []shownAudit }
	err = a.ask("/audit", nil, &list)
	for _, e := range list.Lines {
		by = append(by, e.By)
	}
	return by, err
}
