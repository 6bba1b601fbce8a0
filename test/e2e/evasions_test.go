//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/testkit/testenv"
	"docket/sample/policies"
)

// evasion is what remains of an attempt to hide a decision or to forge one, and what the commands have to say of it.
type evasion struct {
	name   string
	id     string
	stored bool
	letter string   // code of the dead letter with this id; empty: there is none
	logs   []string // text of both logs and why
	where  []string // text of where-is
}

// TestEvasions tries to hide a decision or to forge one. It uses all the ways of a caller of OPA, a client of the collector
// and a writer to each topic. The programs share a key of headers.
func TestEvasions(t *testing.T) {
	t.Parallel()
	file, _ := headerKey(t)
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_HEADER_KEY_FILE="+file,
		"DOCKET_DESK_RETRY_KINDS=transient", "DOCKET_DESK_RETRY_FIRST=1s", "DOCKET_DESK_RETRY_INTERVAL=1s")...)
	uploads := freeAddr(t)
	awaitReady(t, s.collector(uploads))
	s.consumer()
	s.replayer()
	s.desk()

	var all []evasion
	all = append(all, s.evadeThroughOPA(uploads)...)
	all = append(all, s.evadeThroughCollector(uploads)...)
	all = append(all, s.evadeThroughTopics()...)
	s.drained(patience)
	for _, e := range all {
		if e.letter == "" {
			continue
		}
		eventually(t, patience, "the ledger has "+e.id, func() error {
			if !slices.ContainsFunc(s.letters(), func(l shownEntry) bool { return l.DecisionID == e.id && l.Code == e.letter }) {
				return fmt.Errorf("no %s", e.letter)
			}
			return nil
		})
	}
	for _, e := range all {
		s.evaded(e)
	}
	s.ahead()
	s.untouched()
}

// evadeThroughOPA asks a stock OPA. Its caller chooses the input.
func (s *system) evadeThroughOPA(uploads string) (all []evasion) {
	s.t.Helper()
	opa := testenv.StartOPA(s.t, testenv.OPAOptions{
		Service: "http://" + uploads, Token: opaToken, Bundle: testenv.ServeBundle(s.t, "shop", policies.Files, "r1"), UploadBytes: roomy,
	})
	for _, c := range []struct{ name, input, altered string }{
		{"U+0000 in a value", `{"user":"mallory","ua":"x\u0000y"}`, "/input/ua"},
		{"U+0000 in a key", `{"user":"mallory","a\u0000b":1}`, "/input/a"},
		{"37,000 numbers of 30,000 digits", `{"n":[` + strings.Repeat("1e30000,", 36_999) + `1e30000]}`, "/input/n/"},
	} {
		a, err := opa.Ask(s.t.Context(), "shop/authz/allow", json.RawMessage(c.input))
		if err != nil || a.Status != http.StatusOK || a.ID == "" {
			s.t.Fatalf("%s: OPA answered %+v, %v", c.name, a, err)
		}
		all = append(all, evasion{name: c.name + ", through OPA", id: a.ID, stored: true, logs: []string{"altered"}, where: []string{"row"}})
		eventually(s.t, patience, c.name+" has a row", func() error {
			if n := s.rows("decision_id = '" + a.ID + "'"); n != 1 {
				return fmt.Errorf("%d rows", n)
			}
			return nil
		})
		if told := s.docket(nil, 0, "logs", a.ID); !strings.Contains(told, c.altered) {
			s.t.Errorf("%s: logs does not name %s:\n%.1000s", c.name, c.altered, told)
		}
	}
	return all
}

// evadeThroughCollector uploads decisions that stock OPA does not write. A client with a token chooses the whole decision.
func (s *system) evadeThroughCollector(uploads string) (all []evasion) {
	s.t.Helper()
	const at = `"timestamp":"2026-11-20T09:00:00Z","path":"e2e/evasion"`
	for _, c := range []struct {
		evasion
		value string
	}{
		{evasion{name: "a lone surrogate", stored: true, logs: []string{"altered"}}, `"input":"\ud800"`},
		{evasion{name: "a number beyond numeric", stored: true, logs: []string{"altered"}}, `"input":1e999999`},
		{evasion{name: "37,000 numbers of 30,000 digits", stored: true, logs: []string{"altered"}}, `"input":[` + strings.Repeat("1e30000,", 36_999) + `1e30000]`},
		{evasion{name: "a req_id beyond bigint", stored: true}, `"req_id":99999999999999999999`},
		{evasion{name: "a name twice inside", stored: true}, `"input":{"a":1,"a":2}`},
		{evasion{name: "9,000 levels", stored: true}, `"input":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)},
		{evasion{name: "a name twice at the top", letter: "duplicate_key"}, `"result":true,"result":false`},
	} {
		c.id = "upload " + c.name
		c.name += ", uploaded"
		if c.where = []string{"row"}; !c.stored {
			c.where = []string{c.letter}
		}
		if status, body := upload(s.t, uploads, fmt.Sprintf(`[{"decision_id":%q,%s,%s}]`, c.id, at, c.value), true); status != http.StatusOK {
			s.t.Fatalf("%s was answered %d %s", c.name, status, body)
		}
		all = append(all, c.evasion)
	}
	// The first one keeps the identity: an answer about it names the other.
	for _, result := range []string{"false", "true"} {
		if status, body := upload(s.t, uploads, `[{"decision_id":"victim",`+at+`,"result":`+result+`}]`, true); status != http.StatusOK {
			s.t.Fatalf("victim was answered %d %s", status, body)
		}
		s.drained(patience)
	}
	return append(all, evasion{name: "the id of another decision, uploaded", id: "victim", stored: true, letter: "id_conflict",
		logs: []string{"Other decisions with this id", "id_conflict"}, where: []string{"row", "id_conflict"}})
}

// evadeThroughTopics writes into Docket's topics, as somebody without the key can.
func (s *system) evadeThroughTopics() (all []evasion) {
	s.t.Helper()
	header := func(r *kgo.Record, pairs ...string) *kgo.Record {
		for i := 0; i < len(pairs); i += 2 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
		}
		return r
	}
	first := &kgo.Record{Topic: s.places.Topic, Partition: 0, Key: []byte("k"), Value: []byte(logOf("before the forged place", ""))}
	s.produceTo(s.places.Topic, first)
	place := []string{envelope.OriginalTopic, s.places.Topic, envelope.OriginalPartition, fmt.Sprint(first.Partition), envelope.OriginalIndex, "0"}
	next := fmt.Sprint(first.Offset + 1)

	// A parked record that says that it came from the place that the real decision will have.
	parked := header(&kgo.Record{Key: []byte("k"), Value: []byte(logOf("at the place of another", ""))},
		append(place, envelope.OriginalOffset, next, envelope.FailureKind, "transient", envelope.RetryAttempt, "0")...)
	s.produceTo(s.places.ParkingTopic, parked)
	s.drained(patience)
	genuine := &kgo.Record{Partition: first.Partition, Key: []byte("k"), Value: []byte(logOf("whose place was forged", ""))}
	s.produceTo(s.places.Topic, genuine)
	if fmt.Sprint(genuine.Offset) != next || genuine.Partition != first.Partition {
		s.t.Fatalf("the real decision is at %d/%d, not at %d/%s", genuine.Partition, genuine.Offset, first.Partition, next)
	}
	// A dead letter that the schedule would retry.
	forged := header(&kgo.Record{Key: []byte("k"), Value: []byte(logOf("a forged dead letter", ""))},
		append(place, envelope.OriginalOffset, "0", envelope.FailureKind, "transient", envelope.FailureCode, "08006", envelope.FirstFailedAt, "2020-01-01T00:00:00Z")...)
	s.produceTo(s.places.DLQTopic, forged)
	// Headers of Docket in the source.
	source := header(&kgo.Record{Key: []byte("k"), Value: []byte(logOf("headers in the source", ""))},
		append(place, envelope.OriginalOffset, "0", envelope.RetryAttempt, "99", envelope.RetryOf, "11111111-1111-4111-8111-111111111111", envelope.UploadedBy, "ciso")...)
	s.produceTo(s.places.Topic, source)
	return []evasion{
		{name: "the place of another, by a parked record", id: "at the place of another", stored: true, where: []string{"row", s.places.ParkingTopic}},
		{name: "a decision whose place was forged", id: "whose place was forged", stored: true, where: []string{"row", fmt.Sprintf("%s/%d/%d", s.places.Topic, genuine.Partition, genuine.Offset)}},
		{name: "a forged dead letter", id: "a forged dead letter", letter: envelope.Unproven, where: []string{envelope.Unproven}},
		{name: "headers of Docket in the source", id: "headers in the source", stored: true, where: []string{"row"}},
	}
}

// evaded asks the commands about one of them.
func (s *system) evaded(e evasion) {
	s.t.Helper()
	code, outcome := 0, "stored"
	if !e.stored {
		code, outcome = 1, "not stored"
	}
	for _, act := range []string{"logs", "why"} {
		told, err := s.tryDocket(nil, code, act, e.id)
		if err != nil {
			s.t.Errorf("%s: %s: %v", e.name, act, err)
			continue
		}
		for _, w := range append(e.logs, e.letter) {
			if !strings.Contains(told, w) {
				s.t.Errorf("%s: %s does not say %q:\n%.2000s", e.name, act, w, told)
			}
		}
	}
	told, exit := s.command(nil, "consumer", "where-is", e.id)
	for _, w := range e.where {
		if !strings.Contains(told, w) {
			s.t.Errorf("%s: where-is, which ended with %d, does not say %q:\n%.2000s", e.name, exit, w, told)
		}
	}
	var listed []string
	for _, l := range s.letters() {
		if l.DecisionID == e.id {
			listed = append(listed, l.Code)
		}
	}
	if want := slices.DeleteFunc([]string{e.letter}, func(c string) bool { return c == "" }); !slices.Equal(listed, want) {
		s.t.Errorf("%s: dlq list has %v, want %v", e.name, listed, want)
	}
	s.t.Logf("%-55s %s, dead letters %v", e.name, outcome, listed)
}

// ahead: a decision of the year 9999 is stored and found, and heads no page.
func (s *system) ahead() {
	s.t.Helper()
	for id, at := range map[string]string{"last year": "9999-12-31T00:00:00Z", "first year": "0001-01-01T00:00:00Z", "now": time.Now().UTC().Format(time.RFC3339Nano)} {
		s.send(fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"path":"e2e/ahead","result":true}`, id, at))
	}
	s.drained(patience)
	told := s.docket(nil, 0, "logs", "--path", "e2e/ahead")
	if !strings.Contains(told, "now") || strings.Contains(told, "last year") || !strings.Contains(told, "ahead") {
		s.t.Errorf("logs shows\n%s", told)
	}
	for _, id := range []string{"last year", "first year"} {
		if told := s.docket(nil, 0, "why", id); !strings.Contains(told, id) {
			s.t.Errorf("why %s says\n%s", id, told)
		}
	}
}

// untouched: nothing forged was stored, believed or retried.
func (s *system) untouched() {
	s.t.Helper()
	if n := s.rows("decision_id = 'a forged dead letter'"); n != 0 {
		s.t.Error("the forged dead letter was stored")
	}
	if n := s.rows("uploaded_by = 'ciso'"); n != 0 {
		s.t.Error("a header of the source says who uploaded a decision")
	}
	if n := s.rows("uploaded_by = 'opa'"); n < 10 {
		s.t.Errorf("%d rows are of the collector's client", n)
	}
	for _, l := range s.letters() {
		if l.DecisionID == "a forged dead letter" && (l.Kind != "foreign" || l.State != "PENDING") {
			s.t.Errorf("the forged dead letter is %+v", l)
		}
	}
}
