//go:build integration

package browser

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
)

// world is an installation in use. OPA uploads to a collector with lanes, and earlier days are archived or given up.
// There are dead letters of three kinds, jobs that ended and an edit that waits. No screen of it is empty.
type world struct {
	*stack
	uploads string            // of the collector
	now     time.Time         // all days count from it, also after midnight
	put     *strings.Replacer // fills the addresses of screens
}

var services = []struct {
	name, path, user string
	weight, denied   int // of 100
}{
	{"checkout", "shop/refund/decision", "checkout-%d", 30, 22}, {"checkout", "shop/authz/allow", "checkout-%d", 34, 6},
	{"gateway", "http/authz/allow", "gateway-%d", 24, 9}, {"cluster", "kubernetes/admission", "system:node-%d", 9, 35}, {"storefront", "shop/flags/enabled", "storefront-%d", 3, 0},
}

// day makes n decisions of the last 24 hours, always the same but for the time.
func day(n int, now time.Time) (all []string) {
	r := rand.New(rand.NewPCG(7, 22))
	for i := range n {
		at := now.Add(-time.Duration(float64(24*time.Hour) * (1 - float64(i+1)/float64(n+1))))
		pick, k := r.IntN(100), 0
		for pick >= services[k].weight {
			pick -= services[k].weight
			k++
		}
		all = append(all, decided(r, services[k].name, services[k].path, fmt.Sprintf(services[k].user, 1+r.IntN(9)), r.IntN(100) < services[k].denied, at))
	}
	return all
}

func decided(r *rand.Rand, service, path, by string, denied bool, at time.Time) string {
	amount, user := 5+r.IntN(400), []string{"alice", "bob", "carol", "dan", "erin"}[r.IntN(5)]
	d := map[string]any{
		"decision_id": fmt.Sprintf("%08x-%04x-4%03x-b%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48)), "timestamp": at.UTC().Format(time.RFC3339Nano), "path": path,
		"requested_by": by, "req_id": r.IntN(90000), "labels": map[string]string{"id": "5bf7d126-339c-49a0-aabe-d960791bad7f", "version": "1.22.0", "app": service, "region": []string{"eu-west", "eu-north"}[r.IntN(2)]},
		"bundles": map[string]any{service: map[string]string{"revision": "2026.11." + fmt.Sprint(20+at.Hour()/12)}}, "metrics": map[string]int{"timer_rego_query_eval_ns": 90_000 + r.IntN(900_000)},
		"input":  map[string]any{"user": user, "amount": amount, "order": map[string]any{"id": fmt.Sprintf("A-%d", 10_000+r.IntN(9000)), "customer": "carol", "lines": []string{"boots", "laces"}}, "token": "**REDACTED**"},
		"masked": []string{"/input/token"}, "trace_id": fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()),
	}
	switch {
	case path == "shop/flags/enabled" && amount%3 == 0: // undefined
	case path == "shop/refund/decision" && denied:
		d["result"] = map[string]any{"allow": false, "reasons": []string{fmt.Sprintf("a refund of %d is above the limit of 100", amount)}, "violations": []any{map[string]any{"rule": "amount_over_limit", "message": fmt.Sprintf("a refund of %d is above the limit of 100", amount)}}, "policies": []string{"shop/refund"}}
	case path == "shop/refund/decision":
		d["result"] = map[string]any{"allow": true, "reasons": []string{}, "policies": []string{"shop/refund"}}
	default:
		d["result"] = !denied
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // it has no values of other types
	}
	return string(text)
}

// The changes of an operator to the table, and their repair.
const (
	refuseRefunds = "ALTER TABLE decision_logs ADD CONSTRAINT no_billing CHECK (path <> 'billing/refund') NOT VALID"
	refuseTenants = "ALTER TABLE decision_logs ADD CONSTRAINT known_tenant CHECK (path <> 'tenants/admission') NOT VALID"
	takeRefunds   = "ALTER TABLE decision_logs DROP CONSTRAINT no_billing"
)

// olderJobs are more than the page of dead letters shows at a time.
const olderJobs = `WITH made AS (INSERT INTO dead_letter_jobs (act, filter, state, operator, reason, matched, sent, created_at, started_at, ended_at)
	SELECT CASE n % 4 WHEN 0 THEN 'closed' ELSE 'retried' END, '{"code": "23514"}', CASE n WHEN 9 THEN 'STOPPED' ELSE 'DONE' END, (ARRAY['olga', 'oleg', 'mara'])[1 + n % 3], 'a migration was repaired', 40 * n, 40 * n - n % 2,
		now() - make_interval(days => 14 - n), now() - make_interval(days => 14 - n), now() - make_interval(days => 14 - n)
	FROM generate_series(1, 13) n RETURNING job_id, sent)
	INSERT INTO dead_letter_job_ends SELECT job_id, 'stored', sent FROM made`

// today are the decisions of the last 24 hours, and each day before has so many. The oldest of these days leave the
// table, and the first of them is given up.
const (
	today, earlier = 900, 40
	oldestDay      = 8
	archivedFrom   = 5
)

// before are the decisions of earlier days, in order, but for the day that has a part of the last 24 hours. The
// storefront has none: its share is untouched when its decisions of today come, so some of them take the default lane,
// however fast all are uploaded.
func before(now time.Time) (all []string) {
	r := rand.New(rand.NewPCG(11, 28))
	services := services[:len(services)-1]
	for back := oldestDay; back >= 2; back-- {
		start := dayOf(now, back)
		for i := range earlier {
			k := i % len(services)
			all = append(all, decided(r, services[k].name, services[k].path, fmt.Sprintf(services[k].user, 1+r.IntN(9)), r.IntN(100) < services[k].denied, start.Add(8*time.Hour+time.Duration(i)*20*time.Minute)))
		}
	}
	return all
}

func dayOf(now time.Time, back int) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -back)
}

// day is the day so many before today.
func (w *world) day(back int) time.Time { return dayOf(w.now, back) }

// prepare starts the programs and waits until everything has its home.
func prepare(t testing.TB) *world {
	t.Helper()
	w := &world{stack: newStack(t, testenv.Kafka(t), testenv.Postgres(t), "decision-"), uploads: freeAddr(t), now: time.Now()}
	for _, lane := range []string{"urgent", "bulk"} {
		w.kafka.CreateTopic(t, w.topic+"-"+lane, 3, nil)
	}
	w.env = append(w.env, "DOCKET_LANES=urgent,bulk", "DOCKET_ARCHIVE_TO=archive")
	now, r := w.now, rand.New(rand.NewPCG(1, 2))
	// An installation of that age has a partition for each day.
	w.exec("ALTER TABLE decision_logs DETACH PARTITION decision_logs_before")
	w.exec(fmt.Sprintf("ALTER TABLE decision_logs ATTACH PARTITION decision_logs_before FOR VALUES FROM (MINVALUE) TO ('%s')", w.day(oldestDay).Format(time.RFC3339)))
	for back := 1; back <= oldestDay; back++ {
		day := w.day(back)
		w.exec(fmt.Sprintf("CREATE TABLE IF NOT EXISTS decision_logs_p%s PARTITION OF decision_logs FOR VALUES FROM ('%s') TO ('%s')", day.Format("20060102"), day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
	w.exec(refuseRefunds)
	w.exec(refuseTenants)
	collector := w.start("collect", "DOCKET_COLLECTOR_ADDR="+w.uploads, "DOCKET_COLLECTOR_TOKENS=shop:"+opaToken, "DOCKET_COLLECTOR_URGENT=verdict=error;path=kubernetes/*,tenants/*,billing/*", "DOCKET_COLLECTOR_SHARE=label:app=2/s")
	consumer := w.start("consume", "DOCKET_LIMIT_ROWS=20000", "DOCKET_LIMIT_LOW_ROWS=12000")
	replayer := w.start("replay")
	desk := w.start("desk", "DOCKET_DESK_PEERS=http://"+collector.addr+",http://"+consumer.addr+",http://"+replayer.addr,
		"DOCKET_DESK_OIDC_ISSUER=http://127.0.0.1:1", "DOCKET_DESK_OIDC_CLIENT_ID=docket", "DOCKET_DESK_OIDC_REDIRECT_URL="+w.url+"/login/callback", "DOCKET_DESK_OIDC_GROUPS=staff:viewer") // a provider that is away
	collector.awaitReady()
	all := append(before(now), day(today, now)...)
	for i := range 24 {
		all = append(all, decided(r, "billing", "billing/refund", fmt.Sprintf("billing-%d", 1+i%3), true, now.Add(-time.Duration(24-i)*time.Minute)))
	}
	for i := range 7 {
		all = append(all, decided(r, "cluster", "tenants/admission", "system:node-4", true, now.Add(-time.Duration(40+i)*time.Minute)))
	}
	for part := range slices.Chunk(all, 400) {
		w.upload(part...)
	}
	w.send(`{"decision_id":"cut-off","timestamp":`, `{"decision_id":"no-time","path":"shop/authz/allow"}`)
	stored := today + (oldestDay-1)*earlier
	eventually(t, "every record has its home", func() error {
		rows, letters := ask[int](w.stack, "SELECT count(*) FROM decision_logs"), ask[int](w.stack, "SELECT count(*) FROM dead_letters")
		if rows != stored || letters != 33 {
			return fmt.Errorf("%d rows of %d, %d letters", rows, stored, letters)
		}
		return nil
	})
	desk.awaitReady()
	w.exec(olderJobs)
	w.exec(takeRefunds)
	w.run("dlq", "retry", "--path", "billing/refund", "--limit", "10", "--operator", "olga", "--reason", "the check was dropped", "--yes")
	w.exec(refuseRefunds)
	w.propose(ask[string](w.stack, "SELECT dead_letter_id FROM dead_letters WHERE path = 'tenants/admission' ORDER BY dead_letter_id LIMIT 1"))
	eventually(t, "the states are complete", func() error {
		if n := ask[int](w.stack, "SELECT count(*) FROM decision_flips"); n < 20 {
			return fmt.Errorf("%d flips", n)
		}
		return nil
	})
	w.archive()
	w.put = strings.NewReplacer(
		"{decision}", ask[string](w.stack, "SELECT decision_id FROM decision_logs WHERE path = 'shop/refund/decision' AND NOT allowed ORDER BY ts DESC LIMIT 1"),
		"{other}", ask[string](w.stack, "SELECT decision_id FROM decision_logs WHERE path = 'shop/refund/decision' AND allowed ORDER BY ts DESC LIMIT 1"),
		"{group}", ask[string](w.stack, `SELECT fingerprint FROM dead_letter_groups WHERE "constraint" = 'no_billing'`),
		"{letter}", ask[string](w.stack, "SELECT dead_letter_id FROM dead_letters WHERE path = 'billing/refund' AND state = 'PENDING' ORDER BY dead_letter_id LIMIT 1"),
		"{job}", fmt.Sprint(ask[int64](w.stack, "SELECT max(job_id) FROM dead_letter_jobs")),
		"{proposal}", fmt.Sprint(ask[int64](w.stack, "SELECT max(proposal_id) FROM dead_letter_proposals")))
	return w
}

// archive takes the oldest days out of the table, keeps one in both places, and gives the first one up.
func (w *world) archive() {
	w.t.Helper()
	by := []string{"--operator", "mara", "--yes"}
	for back := oldestDay; back >= archivedFrom; back-- {
		w.run(append([]string{"archive", "--day", w.day(back).Format(time.DateOnly)}, by...)...)
	}
	w.run(append([]string{"archive", "--day", w.day(archivedFrom - 1).Format(time.DateOnly), "--keep"}, by...)...)
	first := w.day(oldestDay).Format(time.DateOnly)
	err := filepath.WalkDir(filepath.Join(w.dir, "archive"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(entry.Name(), first) {
			return err
		}
		return os.Remove(path)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.run(append([]string{"archive", "forget", first, "--reason", "a week is over"}, by...)...)
	w.exec("ANALYZE decision_logs") // the calendar has the server's estimates
}

// upload sends decisions until they are taken.
func (w *world) upload(decisions ...string) {
	w.t.Helper()
	eventually(w.t, "the collector takes an upload", func() error { return w.post(w.t.Context(), decisions...) })
}

// post sends decisions as OPA does: a gzipped array.
func (w *world) post(ctx context.Context, decisions ...string) error {
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, _ = io.WriteString(z, "["+strings.Join(decisions, ",")+"]") // into memory
	_ = z.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.uploads+"/logs", &body)
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}, "Authorization": {"Bearer " + opaToken}}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// propose has somebody propose another path for a letter.
func (w *world) propose(id string) {
	w.t.Helper()
	payload := ask[string](w.stack, "SELECT replace(convert_from(value, 'UTF8'), 'tenants/admission', 'tenants/allow') FROM dead_letters WHERE dead_letter_id = $1", id)
	file := filepath.Join(w.t.TempDir(), "payload.json")
	if err := os.WriteFile(file, []byte(payload), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.run("dlq", "edit", id, "--file", file, "--operator", "olga", "--reason", "the path was renamed", "--yes")
}
