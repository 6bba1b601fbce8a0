//go:build integration

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
	"docket/sample/policies"
)

// roomy is an upload that OPA never has to split: a decision that ended with an error cannot be read back by OPA, so that
// splitting would lose it before anybody sees it.
const roomy = 1 << 20

// crowd starts OPAs of both versions, some with buffers that are too small for an outage.
func crowd(t *testing.T, collector string) ([]*caller, *testenv.Bundle) {
	t.Helper()
	bundle := testenv.ServeBundle(t, "shop", policies.Files, "r1")
	callers := []*caller{
		{name: "bytes", version: "1.22.0", ask: questions},
		{name: "events", version: "1.22.0", ask: questions},
		{name: "former", version: "0.70.0", ask: questions},
		{name: "few-bytes", version: "1.22.0", ask: bulky, limited: true, exact: true},
		{name: "few-events", version: "1.22.0", ask: bulky, limited: true, exact: true},
		{name: "few-former", version: "0.70.0", ask: bulky, limited: true},
	}
	options := map[string]testenv.OPAOptions{
		"bytes":      {UploadBytes: roomy},
		"events":     {UploadBytes: roomy, Buffer: "event"},
		"former":     {UploadBytes: roomy, Version: testenv.OPAPrevious},
		"few-bytes":  {UploadBytes: oneUpload, BufferBytes: 15 * oneUpload},
		"few-events": {UploadBytes: oneUpload, Buffer: "event", BufferEvents: 20},
		"few-former": {UploadBytes: 10 * oneUpload, BufferBytes: 15 * oneUpload, Version: testenv.OPAPrevious},
	}
	for _, c := range callers {
		c.t, c.put, c.witness, c.revision = t, map[string]asked{}, watch(t, collector), "r1"
		of := options[c.name]
		of.Service, of.Token, of.Bundle, of.Labels = c.witness.server.URL, opaToken, bundle, map[string]string{"name": c.name}
		c.opa = testenv.StartOPA(t, of)
	}
	return callers, bundle
}

// each does the same with every caller at once.
func each(t *testing.T, callers []*caller, do func(c *caller) error) {
	t.Helper()
	var all errgroup.Group
	for _, c := range callers {
		all.Go(func() error { return do(c) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestOPA_EveryTakenDecisionHasOneRow(t *testing.T) {
	t.Parallel()
	kafka := testenv.OwnKafka(t)
	s := newSystem(t, kafka, testenv.Postgres(t))
	uploads := freeAddr(t)
	collector := s.collector(uploads)
	callers, bundle := crowd(t, uploads)
	sturdy := callers[:3]
	s.consumer()

	each(t, callers, func(c *caller) error { return c.enquire(t.Context(), 40) })
	for _, c := range sturdy {
		eventually(t, patience, "OPA is told in quiet times that its decisions were taken", c.uploaded)
	}

	kafka.Kill(t)
	each(t, callers, func(c *caller) error { return c.enquire(t.Context(), 100) })
	for _, c := range callers {
		eventually(t, patience, "OPA is told that its decisions were not taken", func() error {
			_, answers, _ := c.witness.state()
			state, err := c.opa.State(t.Context())
			if err != nil || answers[http.StatusServiceUnavailable] == 0 || c.limited && state.Dropped() == 0 {
				return fmt.Errorf("%s: uploads %v, dropped %v, %v", c.name, answers, state.Dropped(), err)
			}
			return nil
		})
	}
	kafka.Start(t)

	before := map[string]int{}
	for _, c := range sturdy {
		before[c.name] = c.witness.answered(0)
	}
	var asking errgroup.Group
	for _, c := range sturdy {
		asking.Go(func() error { return c.enquire(t.Context(), 100) })
	}
	collector.kill()
	for _, c := range sturdy {
		eventually(t, patience, "OPA finds nobody to upload to", func() error {
			if c.witness.answered(0) == before[c.name] {
				return fmt.Errorf("%s was always answered", c.name)
			}
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
	collector = s.collector(uploads)

	bundle.Revise("r2")
	for _, c := range callers {
		eventually(t, patience, "OPA works by the new bundle", func() error {
			state, err := c.opa.State(t.Context())
			if err != nil || state.Revisions["shop"] != "r2" {
				return fmt.Errorf("%s: %v, %v", c.name, state.Revisions, err)
			}
			return nil
		})
		c.revision = "r2"
	}
	each(t, callers, func(c *caller) error { return c.enquire(t.Context(), 20) })
	for _, c := range callers {
		eventually(t, patience, "what OPA asked for was taken or dropped", c.uploaded)
	}
	each(t, callers, func(c *caller) error { c.opa.Stop(); return nil })
	s.drained(patience)
	stored := s.stored()
	for _, c := range callers {
		c.judge(stored)
	}
	if letters := s.forwarded(s.places.DLQTopic, home.DeadLetter); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
	collector.sound()
}

func TestOPA_BadDecisionSparesItsNeighbours(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	uploads := freeAddr(t)
	collector := s.collector(uploads)
	s.consumer()
	awaitReady(t, collector)
	for i, zipped := range []bool{true, false} {
		good := func(n int) string { return logOf(fmt.Sprintf("good-%d-%d", i, n), "") }
		mixed := "[" + strings.Join([]string{
			good(1), `{"timestamp":"2026-11-20T09:00:00Z","path":"no/id"}`, good(2), `42`, `{"decision_id":"bad-time","timestamp":"yesterday"}`, good(3),
		}, ",") + "]"
		if status, body := upload(t, uploads, mixed, zipped); status/100 != 2 {
			t.Fatalf("OPA would send it again for ever: %d %s", status, body)
		}
	}
	if status, body := upload(t, uploads, `[{"decision_id":`, true); status != http.StatusBadRequest || !strings.Contains(body, "syntax") {
		t.Errorf("what is no JSON was answered %d %s", status, body)
	}
	eventually(t, patience, "the good ones are in the table", func() error {
		if n := s.rows("decision_id LIKE 'good-%'"); n != 6 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	s.drained(patience) // the bad ones may lie in other partitions
	letters := s.forwarded(s.places.DLQTopic, home.DeadLetter)
	if n := s.rows("true"); n != 6 || letters["missing_field"] != 2 || letters["wrong_type"] != 4 || len(letters) != 2 {
		t.Errorf("%d rows, dead letters %v", n, letters)
	}
}

// A caller of OPA chooses the input. No input keeps a decision out of the table, or makes it one that nobody can read.
func TestOPA_HostileInputHidesNoDecision(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	uploads := freeAddr(t)
	awaitReady(t, s.collector(uploads))
	s.consumer()
	opa := testenv.StartOPA(t, testenv.OPAOptions{
		Service: "http://" + uploads, Token: opaToken, Bundle: testenv.ServeBundle(t, "shop", policies.Files, "r1"), UploadBytes: roomy,
	})
	hostile := map[string]string{ // by what is said of it
		"/input/note, as jsonb":     `{"user":"eve","note":"\u0000"}`,
		"/input/n/10, /input/n/11":  `{"n":[` + strings.Repeat("1e30000,", 9_999) + `1e30000]}`,
		"":                          `{"user":"mara"}`,
		"/input/a\ufffdb, as jsonb": `{"a\u0000b":1}`,
	}
	answers := map[string]testenv.Answer{}
	for told, input := range hostile {
		a, err := opa.Ask(t.Context(), "shop/authz/allow", json.RawMessage(input))
		if err != nil || a.Status != http.StatusOK || a.ID == "" {
			t.Fatalf("%.60s: OPA answered %+v, %v", input, a, err)
		}
		answers[told] = a
	}
	eventually(t, patience, "each has a row", func() error {
		if n := s.rows("true"); n != len(hostile) {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	s.drained(patience)
	if letters := s.forwarded(s.places.DLQTopic, home.DeadLetter); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
	if n := s.rows("length(raw::text) > 100 * 1024"); n != 1 {
		t.Errorf("%d rows have a payload of more than 100 KiB", n)
	}
	for told, a := range answers {
		for _, act := range [][]string{{"logs", a.ID}, {"why", a.ID}} {
			out, code := s.command(nil, "docket", act...)
			if altered := strings.Contains(out, "altered"); code != 0 || !strings.Contains(out, a.ID) || altered != (told != "") {
				t.Errorf("%v of what is altered at %q ended with %d:\n%.1000s", act, told, code, out)
			}
			if act[0] == "logs" && !strings.Contains(out, told) {
				t.Errorf("%v names no %q:\n%.1000s", act, told, out)
			}
		}
	}
}

func TestEnterpriseOPA_RowForEachDecision(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	files, err := filepath.Glob("../../sample/enterprise-opa/*.js*")
	if err != nil || len(files) != 6 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	want := 0
	for _, file := range files {
		value, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want += strings.Count(string(inflated(t, value)), `"decision_id"`)
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: value}).FirstErr(); err != nil { // its sink sets no key
			t.Fatal(err)
		}
	}
	if want != 14 {
		t.Fatalf("the samples hold %d decisions", want)
	}
	s.consumer()
	s.drained(patience)
	if n := s.rows("raw->'labels'->>'type' = 'eopa'"); n != want {
		t.Errorf("%d rows of %d decisions", n, want)
	}
	for where, n := range map[string]int{
		"allowed": 4, "NOT allowed AND path = 'shop/refund/decision' AND raw->'masked' = '[\"/input/token\"]'": 6, "allowed IS NULL AND NOT raw ? 'result'": 4,
	} {
		if got := s.rows(where); got != n {
			t.Errorf("%d rows where %s, not %d", got, where, n)
		}
	}
	if letters := s.forwarded(s.places.DLQTopic, home.DeadLetter); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
}

func awaitReady(t *testing.T, p *process) {
	t.Helper()
	eventually(t, patience, p.name+" is ready", func() error {
		if code, body := p.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
}

// upload sends a body as OPA would.
func upload(t *testing.T, addr, body string, zipped bool) (int, string) {
	t.Helper()
	sent := []byte(body)
	if zipped {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(sent) // into memory
		_ = z.Close()
		sent = b.Bytes()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/logs", bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+opaToken)
	if zipped {
		req.Header.Set("Content-Encoding", "gzip")
	}
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func inflated(t *testing.T, value []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(value, []byte{0x1f, 0x8b}) {
		return value
	}
	z, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

var droppedChunks = regexp.MustCompile(`Dropped (\d+) chunks from buffer`)

// dropped is how many uploads OPA says that it dropped: by its log where it logs them, as its counter takes several at once
// for one.
func (c *caller) dropped(state testenv.OPAState) (n int) {
	for _, m := range droppedChunks.FindAllStringSubmatch(c.opa.Said(), -1) {
		chunks, err := strconv.Atoi(m[1])
		if err != nil {
			c.t.Errorf("OPA said %q", m[0])
		}
		n += chunks
	}
	return max(n, int(state.Dropped()))
}

// A refused decision hides nowhere: a search for its id names its dead letter. A search for a stored decision names every
// other that claims its id.
func TestClaims_OfRefusedDecisionsAreFound(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), deskEnv(t)...)
	uploads := freeAddr(t)
	awaitReady(t, s.collector(uploads))
	s.consumer()
	s.desk()
	const victim = `{"decision_id":"victim","timestamp":"2026-11-20T09:00:00Z","result":false}`
	for _, value := range []string{
		victim,
		`{"decision_id":"victim","timestamp":"2026-11-20T09:00:00Z","result":true}`, // another payload
		`{"decision_id":"victim","timestamp":"yesterday","result":true}`,
		`{"decision_id":"odd-path","timestamp":"2026-11-20T09:00:01Z","path":7}`,
		`{"decision_id":"nul\u0000","timestamp":"2026-11-20T09:00:01Z"}`,
		`{"decision_id":"torn","timestamp":"2026-11-20T09:00:01Z","input":{"a":`,
	} {
		s.send(value)
		s.drained(patience) // in this order
	}
	if status, body := upload(t, uploads, `[`+logOf("good", "")+`,{"decision_id":"uploaded","timestamp":"2026-11-20T09:00:02Z","labels":[]}]`, true); status/100 != 2 {
		t.Fatalf("the upload was answered %d %s", status, body)
	}
	for id, want := range map[string][]string{
		"victim": {"id_conflict", "wrong_type"}, "odd-path": {"wrong_type, PENDING, decided 2026-11-20"}, "nul\ufffd": {"out_of_range"}, "torn": {"syntax"},
		"uploaded": {"wrong_type, PENDING, decided 2026-11-20", "refused by the collector"},
	} {
		code := 1
		if id == "victim" {
			code = 0
		}
		for _, act := range []string{"logs", "why"} {
			eventually(t, patience, act+" tells of "+id, func() error {
				told, err := s.tryDocket(nil, code, act, id)
				if err != nil {
					return err
				}
				for _, w := range append(want, "dead letter", "docket dlq show") {
					if !strings.Contains(told, w) {
						return fmt.Errorf("no %q in\n%s", w, told)
					}
				}
				return nil
			})
		}
		out, _ := s.command(nil, "consumer", "where-is", id)
		for _, w := range want {
			code, _, _ := strings.Cut(w, ",")
			if !strings.Contains(out, code) {
				t.Errorf("where-is %s does not tell of %s:\n%s", id, code, out)
			}
		}
	}
	for _, r := range s.read(s.places.DLQTopic, 6) {
		id := ""
		for _, h := range r.Headers {
			if h.Key == envelope.DecisionID {
				id = string(h.Value)
			}
		}
		if !strings.Contains(string(r.Value), `"decision_id":"`+id+`"`) || id == "" {
			t.Errorf("x-decision-id is %q of %s", id, r.Value)
		}
	}
}
