//go:build integration

package securedpg

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/desk/worker"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/tree"
	"docket/internal/programs/desk"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/output"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// The planted secrets. Operators may see the id and the path of a decision, and nothing else of a payload.
const (
	inPayload = "PLANTEDpayload"
	inShown   = "PLANTEDshown" // the desk also logs it, as a common property of failures
	inPath    = "PLANTEDpath"  // the desk names it in its log too, as what a cause has in common
	inKey     = "PLANTEDkey"
	inHeader  = "PLANTEDheader"
	password  = "PLANTEDpassword"
	apiToken  = "PLANTEDtoken-0123456789abcdef0123456789abcdef"
	hookToken = "PLANTEDhook"
)

// at is the time of all decisions. Of two with one id the later one conflicts.
var at = time.Now().Format(time.RFC3339)

var planted = []string{inPayload, inKey, inHeader, password, apiToken, hookToken}

// ours are the headers that Docket writes.
var ours = map[string]bool{
	"x-original-topic": true, "x-original-partition": true, "x-original-offset": true, "x-original-index": true, "x-original-timestamp": true, "x-failure-kind": true,
	"x-failure-code": true, "x-failure-message": true, "x-failure-table": true, "x-failure-column": true, "x-failure-constraint": true, "x-first-failed-at": true,
	"x-failed-at": true, "x-retry-attempt": true, "x-not-before": true, "x-dead-letter-id": true, "x-consumer": true, "x-decision-time": true,
}

// heard is every output, by its place.
type heard struct {
	mu  sync.Mutex
	all map[string]string
}

func (h *heard) add(where, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[where] += text
}

// marked is a record with something planted in every field. The table refuses it with this code, or takes it if there
// is none.
func marked(n int, raise string) *kgo.Record {
	text := fmt.Sprintf(`{"decision_id":"SHOWN-%d","timestamp":%q,"path":"PATH/allow","raise":%q,"raise_constraint":"odd","labels":{"id":"MARK","version":"MARK","MARK":"MARK"},
		"bundles":{"MARK":{"revision":"MARK"}},"query":"MARK","input":{"MARK":["MARK"]},"result":{"MARK":"MARK"},"requested_by":"MARK","error":{"message":"MARK"},
		"metrics":{"MARK":1},"trace_id":"MARK","MARK":"MARK"}`, n, at, raise)
	if raise == "" {
		text = strings.Replace(text, `"raise":"",`, "", 1)
	}
	return planting([]byte(strings.NewReplacer("MARK", inPayload, "PATH", inPath, "SHOWN", inShown).Replace(text)))
}

func planting(value []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: []byte(inKey), Value: value, Headers: []kgo.RecordHeader{
		{Key: inHeader, Value: []byte(inHeader)}, {Key: "x-failure-message", Value: []byte(inHeader)}, {Key: "x-original-topic", Value: []byte(inHeader)},
		{Key: "x-" + inHeader, Value: []byte(inHeader)}, {Key: "traceparent", Value: []byte(inHeader)}, {Key: "x-dead-letter-id", Value: []byte(inHeader)},
	}}
}

func TestSecrets_PlantedOnesAppearNowhere(t *testing.T) {
	t.Parallel()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	began := time.Now()
	step := func(name string) { t.Logf("%s: %v", name, time.Since(began).Round(time.Millisecond)) }
	out := &heard{all: map[string]string{}}
	dsn := testenv.Postgres(t).Database(t)
	d := &database{t: t, dsn: dsn}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	role := "planted_" + cfg.Database // unique for this run, because roles belong to the whole server
	d.exec(`CREATE ROLE ` + role + ` LOGIN SUPERUSER PASSWORD '` + password + `'`)
	urlFile := path(t, "url")
	write(t, urlFile, fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", role, password, cfg.Host, cfg.Port, cfg.Database))
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		out.add("what the webhook was told", string(body))
	}))
	t.Cleanup(hook.Close)
	apiAddr, err := testenv.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, urlFile, "DOCKET_PARKING_BACKOFF=100ms", "DOCKET_PARKING_MAX_BACKOFF=200ms", "DOCKET_PARKING_MAX_ATTEMPTS=2", "DOCKET_PARK_BATCHES=0",
		"DOCKET_PUBLISH_TIMEOUT=20s", "DOCKET_DESK_API_ADDR="+apiAddr, "DOCKET_DESK_API_TOKENS=ada:admin:"+apiToken, "DOCKET_DESK_ALERT_URLS="+strings.Replace(hook.URL, "http://", "generic+http://", 1)+"/"+hookToken,
		"DOCKET_DESK_ALERT_THRESHOLD=1", "DOCKET_DESK_ALERT_INTERVAL=1s", "DOCKET_DESK_REPORT_INTERVAL=1s", "DOCKET_DESK_RELAY_INTERVAL=50ms", "DOCKET_OPERATOR=ada", "DOCKET_MAX_RECORD_BYTES=64KiB")
	text, code := w.command("migrate")
	out.add("consumer migrate", text)
	if code != 0 {
		t.Fatalf("migrate: %d\n%s", code, text)
	}
	pg := &pgtest.DB{URL: dsn}
	pg.RaiseMarked(t)
	// Of the server's own making too: each quotes the row in its message or its detail.
	d.exec(`ALTER TABLE decision_logs ADD CONSTRAINT no_own CHECK (raw->>'own' IS DISTINCT FROM '23514')`)
	d.exec(`CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		CASE NEW.raw->>'own' WHEN '22P02' THEN PERFORM (NEW.raw->>'query')::int; WHEN '22001' THEN INSERT INTO own_short VALUES (NEW.requested_by); WHEN '23505' THEN INSERT INTO own_unique VALUES (NEW.requested_by); ELSE NULL; END CASE; RETURN NEW; END $$;
		CREATE TABLE own_short (who varchar(3)); CREATE TABLE own_unique (who text UNIQUE); INSERT INTO own_unique VALUES ('` + inPayload + `');
		CREATE TRIGGER own BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION own()`)
	consumer, replayer, clerk := w.start(config.Consumer), w.start(config.Replayer), w.start(config.Desk)
	all := map[string]*program{"consumer": consumer, "replayer": replayer, "desk": clerk}
	for name, p := range all {
		until(t, name+" is ready", func() bool { p.alive(); ok, _ := p.ready(); return ok })
	}
	step("ready")
	look := func() {
		for name, p := range all {
			for _, page := range []string{"/readyz", "/healthz", "/metrics"} {
				out.add(name+page, get(t, "http://"+p.addr+page, ""))
			}
		}
	}

	n := 0
	var records []*kgo.Record
	add := func(r *kgo.Record) { n++; records = append(records, r) }
	for _, raise := range []string{"", "22001", "22003", "22012", "22P02", "23502", "23503", "23505", "23514", "40001", "42501", "53100", "54000", "57014", "58030", "P0001", "XX000", "ABCDE"} {
		add(marked(n, raise))
	}
	for _, own := range []string{"22P02", "23505", "22001", "23514"} {
		r := marked(n, "")
		r.Value = []byte(strings.Replace(string(r.Value), `"raise_constraint":"odd"`, `"own":"`+own+`"`, 1))
		add(r)
	}
	for _, bad := range []string{
		inPayload, `{"decision_id":"` + inPayload, `{"decision_id":"a","decision_id":"` + inPayload + `"}`, `["` + inPayload + `"]`, `{"timestamp":"` + inPayload + `","decision_id":"` + inShown + `"}`,
		`{"decision_id":"x","timestamp":"2024-01-01T00:00:00Z","req_id":"` + inPayload + `"}`, `{"decision_id":"` + inShown + `\u0000","timestamp":"2024-01-01T00:00:00Z"}`,
		`"` + strings.Repeat(inPayload, 8000) + `"`, inPayload + "\r\n\x1b[31m{\"level\":\"info\",\"message\":\"" + inPayload + "\"}",
	} {
		add(planting([]byte(bad)))
	}
	conflicting := marked(0, "")
	conflicting.Value = []byte(strings.Replace(string(conflicting.Value), `"query":"`, `"query":"other `, 1))
	add(conflicting)
	w.kafka.Produce(t, records...)
	dead := func(topics ...string) int { return len(w.kafka.ReadAll(t, topics...)) }
	defer func() {
		if t.Failed() {
			t.Logf("%d records, %d dead; the log:\n%s\n%s", n, dead("decision-logs-dlq", "decision-logs-parking-dlq"), consumer.out, replayer.out)
		}
	}()
	until(t, "dead letters of every kind", func() bool { consumer.alive(); return dead("decision-logs-dlq", "decision-logs-parking-dlq") >= n-6 })
	step("letters")
	look()

	// A hold: everything is refused, and no record can be blamed.
	d.exec(`ALTER TABLE decision_logs RENAME TO elsewhere`)
	w.kafka.Produce(t, marked(100, ""))
	until(t, "a hold", func() bool { _, r := consumer.ready(); return len(r) > 0 && r[0].Code == "42P01" })
	step("held")
	look()
	checked, _ := w.command("check")
	out.add("consumer check", checked)
	step("checked")
	d.exec(`ALTER TABLE elsewhere RENAME TO decision_logs`)
	until(t, "the hold's end", func() bool { ok, _ := consumer.ready(); return ok })

	step("hold ended")
	// The spool: Kafka takes no dead letters.
	fault := w.kafka.FailTopic(kmsg.Produce, "decision-logs-dlq", kerr.TopicAuthorizationFailed, -1)
	w.kafka.Produce(t, marked(101, "23514"))
	until(t, "a spooled record", func() bool {
		return strings.Contains(get(t, "http://"+consumer.addr+"/metrics", ""), `docket_records_total{home="spooled"} 1`)
	})
	step("spooled")
	look()
	fault.Remove()

	// The desk: its commands and its API, with successes and refusals.
	token := "Bearer " + apiToken
	until(t, "letters in the ledger", func() bool {
		clerk.alive()
		return d.list(`SELECT (count(*) >= ` + fmt.Sprint(n-8) + `)::text FROM dead_letters`)[0] == "true"
	})
	step("ledger")
	id := d.list(`SELECT dead_letter_id FROM dead_letters JOIN dead_letter_groups USING (group_id) WHERE code = '23514' LIMIT 1`)[0]
	for _, args := range [][]string{
		{"dlq", "list"}, {"dlq", "list", "--json"}, {"dlq", "groups"}, {"dlq", "show", id}, {"dlq", "report"}, {"dlq", "retry", "--code", "23514", "--dry-run"},
		{"dlq", "retry", "--code", "23514", "--reason", "tried", "--yes"}, {"dlq", "show", "nothing"}, {"dlq", "edit", id, "--from", "nowhere"}, {"settings"},
	} {
		out.add("docket "+strings.Join(args, " "), w.docket(args...))
	}
	step("commands")
	for _, place := range []string{"/api/v1/dead-letters", "/api/v1/dead-letters/" + id, "/api/v1/dead-letters/nothing", "/api/v1/groups", "/api/v1/openapi.json", "/api/v1/dead-letters?state=wrong", "/api/v1/report"} {
		for _, login := range []string{token, token + "x", ""} {
			out.add("the API, "+place, get(t, "http://"+apiAddr+place, login))
		}
	}
	step("API")
	for _, args := range [][]string{{"verify"}, {"where-is", inShown + "-0"}} {
		text, _ := w.command(args...)
		out.add("consumer "+args[0], text)
	}
	step("verified")
	until(t, "an alert", func() bool { out.mu.Lock(); defer out.mu.Unlock(); return out.all["what the webhook was told"] != "" })
	look()

	step("alert")
	for name, p := range all {
		out.add("the log of the "+name, p.out.String())
	}
	for _, r := range w.kafka.ReadAll(t, "decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq") {
		for _, h := range r.Headers {
			switch {
			case ours[h.Key]:
				out.add("headers of "+r.Topic, h.Key+": "+string(h.Value)+"\n")
			case h.Key == "x-decision-id": // the decision's id may be shown
				out.add("decisions of "+r.Topic, string(h.Value)+"\n")
			}
		}
	}
	step("read")
	out.search(t, d)
	step("searched")
}

// search looks for planted texts, and checks that there was output.
func (h *heard) search(t *testing.T, d *database) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if kinds := d.list(`SELECT DISTINCT code FROM dead_letter_groups`); len(kinds) < 10 {
		t.Errorf("only these codes were met: %v", kinds)
	}
	for where, text := range h.all {
		if len(text) == 0 {
			t.Errorf("%s is empty", where)
		}
		quotes := append([]string{"Failing row", "refused {", "already exists.", "invalid input syntax"}, planted...)
		if strings.HasPrefix(where, "the log") || strings.HasSuffix(where, "/metrics") || strings.HasSuffix(where, "/readyz") || strings.HasPrefix(where, "headers") {
			quotes = append(quotes, inShown)
			if where != "the log of the desk" {
				quotes = append(quotes, inPath)
			}
		}
		for _, mark := range quotes {
			if at := strings.Index(text, mark); at >= 0 {
				t.Errorf("%q in %s: …%.300q…", mark, where, text[max(0, at-150):])
			}
		}
		if strings.HasPrefix(where, "the log") {
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}\n") || strings.Contains(line, "\x1b") {
					t.Errorf("%s has a line that is no JSON: %q", where, line)
				}
			}
		}
	}
}

func get(t testing.TB, url, login string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if login != "" {
		req.Header.Set("Authorization", login)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + "\n" + string(body) + "\n"
}

// docket runs one of the desk's commands.
func (w *world) docket(args ...string) string {
	w.t.Helper()
	var b output.Buffer
	tree.Main(cli.Env{
		Program: config.Desk, Args: args, Environ: w.env, Stdout: &b, Stderr: &b, Signals: make(chan os.Signal), Judges: desk.Judges(),
	}, frame.Options{Desk: desk.Main, Open: func(env cli.Env, s config.Settings) (*frame.System, error) {
		db, err := app.OpenDatabase(s, env.Program, zerolog.Nop())
		if err != nil {
			return nil, err
		}
		book := ledgerdb.New(db.DB)
		return &frame.System{Book: book, Trial: desk.NewTrial(s, book, db), Close: db.Close,
			Horizon: func(context.Context, time.Time) ([]worker.HorizonLine, error) { return nil, nil }}, nil
	}})
	return b.String()
}
