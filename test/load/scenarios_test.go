//go:build integration

package load

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// lookups asks the API for decisions by id while two lanes are written.
func lookups(y *system) []Bound {
	y.consume()
	const token = "a-token-of-an-auditor"
	desk := y.start("desk", "DOCKET_DESK_API_TOKENS=auditor:auditor:"+token)
	desk.awaitReady()
	now, later := y.offering(urgent, 50), y.offering(byDefault, 200)
	unwatch := now.watched(roughly)
	defer unwatch()
	y.until("the first decisions are stored", func() bool { return y.lane(byDefault) > 200 && y.lane(urgent) > 20 })
	took, failed := y.lookUp(desk, token, length(20*time.Second))
	now.end()
	later.end()
	now.awaitSeen()
	delays, _ := now.state()
	return []Bound{
		AtMost("p95 of a look-up by id", Quantile(took, 0.95), 50, "ms").ByTime(),
		Exactly("look-ups that failed", float64(failed), 0, "look-ups"),
		AtMost("p99 from the producer to the row, urgent", Quantile(delays, 0.99), 300, "ms").ByTime(),
	}
}

// killed kills one of two workers under load and has verify judge.
func killed(y *system) []Bound {
	first := y.consume()
	y.consume()
	now, later, low := y.offering(urgent, 100), y.offering(byDefault, 400), y.offering(bulk, 100)
	y.until("all lanes have rows", func() bool { return y.lane(urgent) > 50 && y.lane(byDefault) > 200 && y.lane(bulk) > 50 })
	y.pause(length(5 * time.Second))
	first.kill()
	y.pause(length(10 * time.Second))
	for _, o := range []*offer{now, later, low} {
		o.end()
	}
	y.must(y.client.Flush(y.t.Context()))
	y.settled(now, later, low)
	y.until("all is committed", y.allCommitted) // a row is there before its offset is committed
	var report struct {
		Broken bool  `json:"broken"`
		Unread int64 `json:"unread"`
	}
	text := y.command("verify", "--json")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		y.t.Fatalf("verify printed no report: %v\n%s", err, text)
	}
	broken := 0
	if report.Broken {
		broken = 1
	}
	return []Bound{
		Exactly("decisions without a row", float64(y.sent(now, later, low)-y.number("SELECT count(*) FROM decision_logs")), 0, "decisions"),
		Exactly("decisions that verify found unread", float64(report.Unread), 0, "decisions"),
		Exactly("verify found a broken promise (1) or none (0)", float64(broken), 0, ""),
	}
}

// sent is how many decisions were offered.
func (y *system) sent(offers ...*offer) (n int64) {
	for _, o := range offers {
		n += int64(o.all())
	}
	return n
}

// settled waits until each decision of the offers has a row.
func (y *system) settled(offers ...*offer) {
	y.t.Helper()
	want := y.sent(offers...)
	y.until(fmt.Sprintf("the table has %d rows", want), func() bool { return y.number("SELECT count(*) FROM decision_logs") >= want })
}

// slowDatabase lets each answer of the database wait for ten seconds, so that no write ends in its time.
func slowDatabase(y *system) []Bound {
	wire, url := y.wired("postgres", y.dsn)
	y.consume("DOCKET_DATABASE_URL="+url, "DOCKET_PARK_BATCHES=0")
	now, later := y.offering(urgent, 50), y.offering(byDefault, 200)
	unwatch := now.watched(roughly)
	defer unwatch()
	y.until("all lanes have rows", func() bool { return y.lane(urgent) > 50 && y.lane(byDefault) > 200 })
	slow := wire.delay(y, 10*time.Second)
	y.pause(length(12 * time.Second))
	ahead := y.committed(urgent) + y.committed(byDefault) // each record is a decision, and no other home is open
	ahead = max(0, ahead-y.number("SELECT count(*) FROM decision_logs"))
	slow.end(y)
	now.forget() // catching up belongs to the time that is measured
	y.pause(length(10 * time.Second))
	now.end()
	later.end()
	now.awaitSeen()
	delays, _ := now.state()
	y.settled(now, later)
	return []Bound{
		AtMost("offsets committed without a row while it was slow", float64(ahead), 0, "offsets"),
		AtMost("p95 from the producer to the row afterwards, urgent", Quantile(delays, 0.95), 3000, "ms").ByTime(),
		Exactly("decisions without a row", float64(y.sent(now, later)-y.number("SELECT count(*) FROM decision_logs")), 0, "decisions"),
	}
}

// backlog compares the urgent lane without and with a backlog of the default lane.
func backlog(y *system) []Bound {
	n := 1_000_000
	if !*whole {
		n = 20_000
	}
	y.consume()
	alone := y.urgentAlone(length(12 * time.Second))
	y.pour(byDefault, n)
	y.until("the backlog is being stored", func() bool { return y.lane(byDefault) > 0 })
	now := y.offering(urgent, 50)
	unwatch := now.watched(closely)
	defer unwatch()
	y.until("the backlog is stored", func() bool { return y.committed(byDefault) >= int64(n) })
	now.end()
	now.awaitSeen()
	delays, _ := now.state()
	with := Quantile(delays, 0.99)
	bareAlone, bareBeside := y.bareCommits(length(12 * time.Second))
	return []Bound{
		AtMost("p99 from the producer to the row, urgent, with the backlog", with, 300, "ms").ByTime(),
		AtMost("that against the p99 without a backlog", with/alone, 1.2, "times").ByTime(),
		Figure("p99 of a bare INSERT beside three sessions of COPY, without Docket", bareBeside, "ms"),
		Figure("that against the p99 of a bare INSERT alone", bareBeside/bareAlone, "times"),
		AtLeast("urgent decisions that were measured meanwhile", float64(len(delays)), 100, "decisions").ByTime(),
		Exactly("decisions of the backlog without a row", float64(int64(n)-y.lane(byDefault)), 0, "decisions"),
	}
}

// urgentAlone returns the p99 of an urgent lane beside an idle default lane, in milliseconds.
func (y *system) urgentAlone(d time.Duration) float64 {
	y.t.Helper()
	now := y.offering(urgent, 50)
	unwatch := now.watched(closely)
	defer unwatch()
	y.until("the first decisions are stored", func() bool { delays, _ := now.state(); return len(delays) > 20 })
	now.forget()
	y.pause(d)
	now.end()
	now.awaitSeen()
	delays, _ := now.state()
	return Quantile(delays, 0.99)
}

// reasons returns the reasons in /readyz, by comma.
func (p *program) reasons() string {
	_, text := p.readiness()
	var body struct {
		Reasons []struct {
			Reason string `json:"reason"`
		} `json:"reasons"`
	}
	if json.Unmarshal([]byte(text), &body) != nil {
		return ""
	}
	var all []string
	for _, r := range body.Reasons {
		all = append(all, r.Reason)
	}
	return strings.Join(all, ",")
}
