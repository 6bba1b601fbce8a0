//go:build integration

package load

import (
	"time"
)

// The limit of the scenarios. The burst is the default: a tenth.
const (
	allRows = 450
	lowRows = 350
	burst   = allRows / 10
)

func limits(redis string) []string {
	settings := []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_LOW_ROWS=350"}
	if redis != "" {
		settings = append(settings, "DOCKET_REDIS_URL="+redis)
	}
	return settings
}

// granted is how many rows the limit has granted to all lanes, or to a class of them.
func granted(programs []*program, class ...string) float64 {
	var labels []string
	for _, c := range class {
		labels = append(labels, `class="`+c+`"`)
	}
	sum := 0.0
	for _, p := range programs {
		sum += p.metric("docket_limit_rows_total", labels...)
	}
	return sum
}

// grants samples what the limit grants for a time, after the full buckets of the start are used up.
func (y *system) grants(d time.Duration, class string, programs ...*program) (all, of []Sample) {
	y.t.Helper()
	stopAll := y.sampled(func() float64 { return granted(programs) })
	stopOf := y.sampled(func() float64 { return granted(programs, class) })
	y.pause(d)
	return stopAll(), stopOf()
}

// limited offers more than the limit to two workers that share it in Redis.
func limited(y *system) []Bound {
	return y.overTheLimit(y.redis())
}

// clustered does the same on three nodes.
func clustered(y *system) []Bound { return y.overTheLimit(y.redisCluster()) }

func (y *system) overTheLimit(redis string) []Bound {
	y.t.Helper()
	workers := []*program{y.consume(limits(redis)...), y.consume(limits(redis)...)}
	now, low := y.offering(urgent, 200), y.offering(byDefault, 300)
	y.until("the buckets of the start are used up", func() bool { return granted(workers) > 2*allRows })
	pinged := y.pings(redis)
	all, urgentOnly := y.grants(length(30*time.Second), "urgent", workers...)
	slowPings := pinged()
	now.end()
	low.end()
	y.settled(now, low)
	return []Bound{
		Bound{What: "rows granted a second", Measured: Rate(all), Least: 0.99 * allRows, Most: 1.01 * allRows, Unit: "rows/s"}.ByTime(),
		AtMost("most rows granted within a second", MostWithin(all, time.Second), allRows+burst, "rows").ByTime(), // workers count a grant when they hear of it
		AtMost("rows granted beyond the limit in all", Above(all, allRows), 2*burst, "rows"),
		Bound{What: "of them urgent, a second", Measured: Rate(urgentOnly), Least: 0.98 * 200, Most: 1.02 * 200, Unit: "rows/s"}.ByTime(),
		slowCalls(workers),
		Figure("the same of a bare PING at the same time, 20 a second", slowPings, "calls"),
		Exactly("decisions without a row", float64(y.sent(now, low)-y.number("SELECT count(*) FROM decision_logs")), 0, "decisions"),
	}
}

// slowCalls is the share of calls to Redis that took longer than a millisecond. With at most 1 %, p99 is below it.
func slowCalls(workers []*program) Bound {
	quick, all := 0.0, 0.0
	for _, w := range workers {
		quick += w.metric("docket_limit_call_seconds_bucket", `result="ok"`, `le="0.001"`)
		all += w.metric("docket_limit_call_seconds_count", `result="ok"`)
	}
	return AtMost("calls to Redis of more than 1 ms, of a hundred", 100*(all-quick)/all, 1, "calls").ByTime()
}

// lowAlone offers more than the low limit to the default and the bulk lane.
func lowAlone(y *system) []Bound {
	worker := y.consume(limits(y.redis())...)
	one, two := y.offering(byDefault, 300), y.offering(bulk, 200)
	y.until("the buckets of the start are used up", func() bool { return granted([]*program{worker}) > 2*lowRows })
	all, _ := y.grants(length(20*time.Second), "low", worker)
	one.end()
	two.end()
	y.settled(one, two)
	return []Bound{
		AtMost("rows granted a second", Rate(all), 1.01*lowRows, "rows/s").ByTime(),
		AtLeast("rows granted a second", Rate(all), 0.97*lowRows, "rows/s").ByTime(),
		AtMost("most rows granted within a second", MostWithin(all, time.Second), lowRows+burst, "rows").ByTime(),
		AtMost("rows granted beyond the limit in all", Above(all, lowRows), 2*burst, "rows"),
		Exactly("decisions without a row", float64(y.sent(one, two)-y.number("SELECT count(*) FROM decision_logs")), 0, "decisions"),
	}
}

// emptyLow keeps the low bucket empty and sends urgent decisions, which the rest of the common bucket is enough for.
func emptyLow(y *system) []Bound {
	worker := y.consume(limits(y.redis())...)
	low := y.offering(byDefault, 500)
	y.until("the low bucket is empty", func() bool { return granted([]*program{worker}, "low") > 2*lowRows })
	now := y.offering(urgent, 80)
	unwatch := now.watched(roughly)
	defer unwatch()
	_, of := y.grants(length(15*time.Second), "urgent", worker)
	low.end()
	now.end()
	now.awaitSeen()
	delays, _ := now.state()
	y.settled(low, now)
	return []Bound{
		AtMost("p99 from the producer to the row, urgent", Quantile(delays, 0.99), 300, "ms").ByTime(),
		AtLeast("urgent rows granted a second", Rate(of), 0.97*80, "rows/s").ByTime(),
		Exactly("decisions without a row", float64(y.sent(now, low)-y.number("SELECT count(*) FROM decision_logs")), 0, "decisions"),
	}
}

// redisGone cuts Redis off under load: from one of two workers, and then from both.
func redisGone(y *system) []Bound {
	redis := y.redis()
	one, oneURL := y.wired("redis", redis)
	both, bothURL := y.wired("redis", redis)
	const token = "a-token-of-an-auditor"
	desk := y.start("desk", append(limits(bothURL), "DOCKET_DESK_API_TOKENS=auditor:auditor:"+token)...)
	desk.awaitReady()
	alone, other := y.consume(limits(oneURL)...), y.consume(limits(bothURL)...)
	workers := []*program{alone, other}
	now, low := y.offering(urgent, 80), y.offering(byDefault, 400)
	unwatch := now.watched(roughly)
	defer unwatch()
	y.until("both workers have a part of each lane", func() bool { return granted(workers[:1], "low") > 100 && granted(workers[1:], "low") > 100 })
	away := func(w *program) bool { return has(w.reasons(), "limits_away") }
	waiting := func(of ...*program) {
		for _, w := range of {
			y.until("the low lanes wait for Redis", func() bool { return away(w) })
		}
	}

	one.cut()
	waiting(alone)
	fine := granted([]*program{alone}, "low")
	most, _ := y.grants(length(10*time.Second), "low", workers...)
	leaked := granted([]*program{alone}, "low") - fine

	both.cut()
	waiting(other)
	low.end() // enough waits, and has to be stored at the end
	now.forget()
	before, from := granted(workers, "low"), y.committed(byDefault)
	all, of := y.grants(length(15*time.Second), "urgent", workers...)
	passed, ahead := granted(workers, "low")-before, y.committed(byDefault)-from
	status, _ := alone.readiness()
	reads, _ := y.lookUp(desk, token, length(5*time.Second))
	delays, _ := now.state()

	one.restore(y)
	both.restore(y)
	y.until("the low lanes go on", func() bool { return granted(workers, "low") > before })
	now.end()
	now.awaitSeen()
	y.settled(low, now)
	return []Bound{
		Exactly("rows of the low lanes that a worker was granted while it alone was cut off", leaked, 0, "rows"),
		// It has half of the partitions, and so half of what the low lanes leave free.
		AtMost("most rows granted within a second meanwhile", MostWithin(most, time.Second), allRows+burst+(allRows-lowRows)/2, "rows").ByTime(),
		Exactly("rows of the low lanes that were granted while Redis was gone", passed, 0, "rows"),
		// Three turns of each may have been granted before, and not be committed yet.
		AtMost("offsets of the low lane that were committed meanwhile", float64(ahead), 2*3*burst, "offsets"),
		AtLeast("urgent rows granted a second", Rate(of), 0.95*80, "rows/s").ByTime(),
		AtMost("p95 from the producer to the row, urgent", Quantile(delays, 0.95), 1000, "ms").ByTime(),
		AtMost("most rows granted within a second", MostWithin(all, time.Second), allRows+burst, "rows").ByTime(), // workers count a grant when they hear of it
		AtMost("p95 of a look-up by id", Quantile(reads, 0.95), 50, "ms").ByTime(),
		Exactly("status of /readyz meanwhile", float64(status), 200, ""),
		Exactly("decisions without a row", float64(y.sent(now, low)-y.number("SELECT count(*) FROM decision_logs")), 0, "decisions"),
	}
}
