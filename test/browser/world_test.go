//go:build integration

package browser

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
)

// world is a desk with a day of decisions, three kinds of dead letters and a job that ended.
type world struct {
	*stack
	put *strings.Replacer // fills the addresses of screens
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

// prepare starts the programs and waits until everything has its home.
func prepare(t testing.TB) *world {
	t.Helper()
	w := &world{stack: newStack(t, testenv.Kafka(t), testenv.Postgres(t), "decision-")}
	w.exec(refuseRefunds)
	w.exec(refuseTenants)
	now, r := time.Now(), rand.New(rand.NewPCG(1, 2))
	all := day(900, now)
	for i := range 24 {
		all = append(all, decided(r, "billing", "billing/refund", fmt.Sprintf("billing-%d", 1+i%3), true, now.Add(-time.Duration(24-i)*time.Minute)))
	}
	for i := range 7 {
		all = append(all, decided(r, "cluster", "tenants/admission", "system:node-4", true, now.Add(-time.Duration(40+i)*time.Minute)))
	}
	w.send(append(all, `{"decision_id":"cut-off","timestamp":`, `{"decision_id":"no-time","path":"shop/authz/allow"}`)...)
	w.start("consume")
	w.start("replay")
	desk := w.start("desk", "DOCKET_DESK_OIDC_ISSUER=http://127.0.0.1:1", "DOCKET_DESK_OIDC_CLIENT_ID=docket", "DOCKET_DESK_OIDC_REDIRECT_URL="+w.url+"/login/callback", "DOCKET_DESK_OIDC_GROUPS=staff:viewer") // a provider that is away
	eventually(t, "every record has its home", func() error {
		rows, letters := ask[int](w.stack, "SELECT count(*) FROM decision_logs"), ask[int](w.stack, "SELECT count(*) FROM dead_letters")
		if rows != 900 || letters != 33 {
			return fmt.Errorf("%d rows, %d letters", rows, letters)
		}
		return nil
	})
	desk.awaitReady()
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
	w.put = strings.NewReplacer(
		"{decision}", ask[string](w.stack, "SELECT decision_id FROM decision_logs WHERE path = 'shop/refund/decision' AND NOT allowed ORDER BY ts DESC LIMIT 1"),
		"{other}", ask[string](w.stack, "SELECT decision_id FROM decision_logs WHERE path = 'shop/refund/decision' AND allowed ORDER BY ts DESC LIMIT 1"),
		"{group}", ask[string](w.stack, `SELECT fingerprint FROM dead_letter_groups WHERE "constraint" = 'no_billing'`),
		"{letter}", ask[string](w.stack, "SELECT dead_letter_id FROM dead_letters WHERE path = 'billing/refund' AND state = 'PENDING' ORDER BY dead_letter_id LIMIT 1"),
		"{job}", fmt.Sprint(ask[int64](w.stack, "SELECT max(job_id) FROM dead_letter_jobs")),
		"{proposal}", fmt.Sprint(ask[int64](w.stack, "SELECT max(proposal_id) FROM dead_letter_proposals")))
	return w
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
