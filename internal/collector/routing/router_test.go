package routing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/consumer/lanes"
)

// routed makes a router from the texts of its settings.
func routed(t testing.TB, rules, shares string) *Router {
	t.Helper()
	r, wrong := ParseRules(rules)
	s, alsoWrong := ParseShares(shares)
	if len(wrong)+len(alsoWrong) > 0 {
		t.Fatal(wrong, alsoWrong)
	}
	return New(Config{Rules: r, Shares: s, Urgent: true, Bulk: true}, start)
}

// count routes a decision n times and returns how often each lane took it, and the rules that shaped it.
func count(r *Router, n int, client string, fields string, t testing.TB, now time.Time) (by map[lanes.Lane]int, shaped map[string]int) {
	t.Helper()
	by, shaped = map[lanes.Lane]int{}, map[string]int{}
	l := logOf(t, fields)
	for range n {
		lane, rule := r.Route(client, l, now, new(Paid))
		by[lane]++
		if rule != "" {
			shaped[rule]++
		}
	}
	return by, shaped
}

const (
	fromShop = `"labels":{"id":"shop","tenant":"acme"},"result":`
	fromBank = `"labels":{"id":"bank","tenant":"acme"},"result":`
)

// settle has a sender be known, without a token of its bucket taken.
func settle(r *Router, client, fields string, t testing.TB, now time.Time) {
	t.Helper()
	l := logOf(t, fields)
	for _, p := range r.shares() {
		for range settledAfter {
			p.of(p.sender(l), client, now)
		}
	}
}

func TestRouter_FloodLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "label:id=10/s")
	settle(r, "proxy", fromShop+"true", t, start)
	settle(r, "proxy", fromBank+"true", t, start)
	by, shaped := count(r, 1000, "proxy", fromShop+"true", t, start)
	if by[lanes.Default] != 100 || by[lanes.Bulk] != 900 || shaped["label:id"] != 900 {
		t.Errorf("the flood: %v %v", by, shaped)
	}
	if by, _ := count(r, 1, "proxy", fromBank+"false", t, start); by[lanes.Urgent] != 1 {
		t.Errorf("the denial of the other: %v", by)
	}
	if by, _ := count(r, 100, "proxy", fromBank+"true", t, start); by[lanes.Default] != 100 {
		t.Errorf("the other: %v", by)
	}
	if by, _ := count(r, 1, "proxy", fromShop+"false", t, start); by[lanes.Urgent] != 1 {
		t.Errorf("the denial of the flood: %v", by)
	}
	if by, _ := count(r, 100, "proxy", fromShop+"true", t, start.Add(5*time.Second)); by[lanes.Default] != 50 {
		t.Errorf("five seconds later: %v", by)
	}
}

func TestRouter_StormOfDenialsIsNoShortCut(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "label:id=10/s;urgent=2/s")
	settle(r, "proxy", fromShop+"false", t, start)
	by, shaped := count(r, 1000, "proxy", fromShop+"false", t, start)
	if by[lanes.Urgent] != 20 || by[lanes.Default] != 100 || by[lanes.Bulk] != 880 {
		t.Errorf("lanes %v", by)
	}
	if shaped[RuleUrgent] != 100 || shaped["label:id"] != 880 {
		t.Errorf("shaped %v", shaped)
	}
	settle(r, "proxy", fromBank+"false", t, start)
	if by, _ := count(r, 1, "proxy", fromBank+"false", t, start); by[lanes.Urgent] != 1 {
		t.Errorf("the denial of another: %v", by)
	}
}

// The urgent share belongs to each value of the first label, wherever the setting names the client.
func TestRouter_UrgentShareIsOfTheLabel(t *testing.T) {
	t.Parallel()
	for _, shares := range []string{"label:id=1000/s;client=5000/s;urgent=2/s", "client=5000/s;label:id=1000/s;urgent=2/s"} {
		r := routed(t, "verdict=denied", shares)
		settle(r, "proxy", fromShop+"false", t, start)
		settle(r, "proxy", fromBank+"false", t, start)
		count(r, 100, "proxy", fromShop+"false", t, start)
		if by, _ := count(r, 5, "proxy", fromBank+"false", t, start); by[lanes.Urgent] != 5 {
			t.Errorf("%s: the denials of a quiet sender behind those of another: %v", shares, by)
		}
	}
}

func TestRouter_UrgentShareByDefault(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "")
	by, _ := count(r, 10_000, "one", `"result":false`, t, start)
	if by[lanes.Urgent] != burstOf(DefaultUrgent) || by[lanes.Bulk] != 0 {
		t.Errorf("lanes %v", by)
	}
	if by, _ := count(r, 10, "two", `"result":false`, t, start); by[lanes.Urgent] != 10 {
		t.Errorf("another client: %v", by)
	}
}

// TestRouter_PaysFromAllSharesOrNone: a decision over one share draws nothing from another.
func TestRouter_PaysFromAllSharesOrNone(t *testing.T) {
	t.Parallel()
	r := routed(t, "", "label:tenant=20/s;label:id=10/s")
	settle(r, "proxy", fromShop+"true", t, start)
	settle(r, "proxy", fromBank+"true", t, start)
	if by, shaped := count(r, 5000, "proxy", fromShop+"true", t, start); by[lanes.Default] != 100 || shaped["label:id"] != 4900 {
		t.Errorf("the flood: %v %v", by, shaped)
	}
	if by, shaped := count(r, 200, "proxy", fromBank+"true", t, start); by[lanes.Default] != 100 || shaped["label:tenant"] != 100 {
		t.Errorf("its neighbour: %v %v", by, shaped)
	}
}

func TestRouter_ClientShareHoldsWhateverIsInvented(t *testing.T) {
	t.Parallel()
	r := routed(t, "", "label:id=10/s;client=20/s")
	passed := 0
	for i := range 20_000 {
		if lane, _ := r.Route("inventor", logOf(t, fmt.Sprintf(`"labels":{"id":"x%d"}`, i/20)), start, new(Paid)); lane == lanes.Default {
			passed++
		}
	}
	if passed > burstOf(20) {
		t.Errorf("%d passed", passed)
	}
	if by, _ := count(r, 100, "honest", fromBank+"true", t, start); by[lanes.Default] != 100 {
		t.Errorf("another client: %v", by)
	}
}

func TestRouter_MeantDependsOnTheDecisionAlone(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "label:id=1/s;urgent=1/s")
	count(r, 1000, "it", fromShop+"false", t, start)
	if r.Meant(logOf(t, fromShop+"false")) != lanes.Urgent || r.Meant(logOf(t, fromShop+"true")) != lanes.Default {
		t.Error("a share has changed it")
	}
}

func TestRouter_LaneThatIsNotThereIsNotUsed(t *testing.T) {
	t.Parallel()
	rules, _ := ParseRules("verdict=denied")
	shares, _ := ParseShares("label:id=1/s;urgent=1/s")
	for _, c := range []Config{{Rules: rules, Shares: shares}, {Rules: rules, Shares: shares, Urgent: true}, {Rules: rules, Shares: shares, Bulk: true}, {Urgent: true, Bulk: true}} {
		r := New(c, start)
		by, shaped := count(r, 100, "it", fromShop+"false", t, start)
		if by[lanes.Urgent] > 0 && !c.Urgent || by[lanes.Bulk] > 0 && !c.Bulk || len(c.Lanes()) < len(by) {
			t.Errorf("%+v: %v", c, by)
		}
		for rule := range shaped {
			if !strings.Contains(fmt.Sprint(c.Shaping()), rule) {
				t.Errorf("%+v: shaped by %s", c, rule)
			}
		}
	}
}

func TestRouter_IdleRuleIsToldOnce(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied;path=admni/*;label:id=shop", "label:tenat=5/s;client=1000/s")
	routes := func(at time.Duration) {
		count(r, 1, "it", fromShop+"false", t, start.Add(at))
		count(r, 1, "it", fromBank+"true", t, start.Add(at))
	}
	routes(30 * time.Minute)
	if idle := r.NewlyIdle(start.Add(IdleAfter - 1)); len(idle) > 0 {
		t.Errorf("too early: %v", idle)
	}
	want := []Idle{{SettingUrgent, 2, 1, "path", start}, {SettingShare, 1, 0, "label:tenat", start}}
	if idle := r.NewlyIdle(start.Add(IdleAfter)); fmt.Sprint(idle) != fmt.Sprint(want) {
		t.Errorf("idle %v, want %v", idle, want)
	}
	if s := r.Status(start.Add(IdleAfter)); fmt.Sprint(s.Idle) != fmt.Sprint(want) {
		t.Errorf("status %v", s.Idle)
	}
	routes(IdleAfter)
	if idle := r.NewlyIdle(start.Add(IdleAfter + time.Minute)); len(idle) > 0 {
		t.Errorf("told twice: %v", idle)
	}
	count(r, 1, "it", `"path":"admni/x"`, t, start.Add(2*IdleAfter))
	if s := r.Status(start.Add(2 * IdleAfter)); len(s.Idle) != 1 {
		t.Errorf("of use again: %v", s.Idle)
	}
}

// TestRouter_EachIdleValueIsTold has values that match nothing beside values of the same condition that match.
func TestRouter_EachIdleValueIsTold(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied,error;path=paymnts/*,admin/*,admin/x,admin;label:tenant=acme,acne,7;label:id=shop", "client=1000/s")
	routes := func(at time.Duration) {
		count(r, 1, "it", `"path":"admin/x",`+fromShop+"false", t, start.Add(at))
	}
	routes(30 * time.Minute)
	want := []Idle{
		{SettingUrgent, 1, 2, "verdict", start}, {SettingUrgent, 2, 1, "path", start}, {SettingUrgent, 2, 4, "path", start},
		{SettingUrgent, 3, 2, "label:tenant", start}, {SettingUrgent, 3, 3, "label:tenant", start},
	}
	if idle := r.NewlyIdle(start.Add(IdleAfter)); fmt.Sprint(idle) != fmt.Sprint(want) {
		t.Errorf("idle %v, want %v", idle, want)
	}
	routes(IdleAfter)
	count(r, 1, "it", `"path":"paymnts/x","labels":{"tenant":7}`, t, start.Add(IdleAfter+time.Minute))
	if s, want := r.Status(start.Add(IdleAfter+time.Minute)), slices.Delete(slices.Delete(want, 4, 5), 1, 2); fmt.Sprint(s.Idle) != fmt.Sprint(want) {
		t.Errorf("status %v, want %v", s.Idle, want)
	}
}

// TestRouter_UrgentDecisionsUseShares has an hour of nothing but urgent decisions, all within their share.
func TestRouter_UrgentDecisionsUseShares(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "label:id=5/s;label:tenat=5/s;client=1000/s")
	for at := range 7 {
		if by, _ := count(r, 1, "it", fromShop+"false", t, start.Add(time.Duration(at)*10*time.Minute)); by[lanes.Urgent] != 1 {
			t.Fatalf("lanes %v", by)
		}
	}
	want := []Idle{{SettingShare, 2, 0, "label:tenat", start}}
	if idle := r.NewlyIdle(start.Add(IdleAfter)); fmt.Sprint(idle) != fmt.Sprint(want) {
		t.Errorf("idle %v, want %v", idle, want)
	}
	if by, _ := count(r, 50, "it", fromShop+"true", t, start.Add(IdleAfter)); by[lanes.Default] != 50 {
		t.Errorf("urgent decisions were paid from the share: %v", by)
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestRouter_RoutesWithoutMemory(t *testing.T) {
	for name, fields := range map[string]string{"urgent": `"path":"admin/x","result":false`, "not": `"path":"shop","result":true`} {
		r, l := routed(t, "verdict=denied;path=paymnts/*,admin/*;label:tenant=acme", "label:id=1000/s;client=1000/s"), logOf(t, fields)
		var paid Paid
		if n := testing.AllocsPerRun(100, func() { r.Route("it", l, start, &paid); paid.Reset() }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestRouter_StatusNamesNoValue(t *testing.T) {
	t.Parallel()
	r := routed(t, "", "label:id=1/s;client=50/s")
	for i := range 10 {
		count(r, 20+i, fmt.Sprint("name opa-", i), fmt.Sprintf(`"labels":{"id":"secret-%d"}`, i), t, start)
	}
	count(r, 30, "name none", ``, t, start)
	s := r.Status(start)
	if len(s.Shaped) != mostShaped || s.Shaped[0].Client != "name none" || s.Shaped[0].Rule != "label:id" {
		t.Fatalf("%+v", s)
	}
	for _, one := range s.Shaped[1:] {
		if strings.Contains(fmt.Sprint(one), "secret") {
			t.Errorf("%+v", one)
		}
	}
	if s := r.Status(start.Add(shapedWithin + 1)); len(s.Shaped) != 0 {
		t.Errorf("later: %+v", s)
	}
}

// TestRouter_CountsAreForgotten: a sender that was heavy once does not keep its place for ever.
func TestRouter_CountsAreForgotten(t *testing.T) {
	t.Parallel()
	r := routed(t, "", "label:id=1000/s")
	p := r.senders[0]
	count(r, 1000, "it", fromShop+"true", t, start)
	count(r, 1, "it", fromBank+"true", t, start.Add(3*forgetting))
	if got := p.settled.byName["shop"].count; got != 1000/8 {
		t.Errorf("count %d after three halvings", got)
	}
	count(r, 1, "it", fromBank+"true", t, start.Add(365*24*time.Hour))
	if got := p.settled.byName["shop"].count; got != 0 {
		t.Errorf("count %d after a year", got)
	}
}

func TestRouter_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "label:id=10/s;client=10/s")
	var all sync.WaitGroup
	for g := range 4 {
		l := logOf(t, fmt.Sprintf(`"labels":{"id":"%d"},"result":%v`, g, g%2 == 0))
		all.Go(func() {
			for i := range 500 {
				now := start.Add(time.Duration(i) * time.Second)
				r.Route(fmt.Sprint(i%3), l, now, new(Paid))
				r.Meant(l)
				r.NewlyIdle(now)
				r.Status(now)
			}
		})
	}
	all.Wait()
}

// TestRouter_ReturnedIsUnspent has an upload with decisions of all kinds come three times, and Kafka refuse it twice.
func TestRouter_ReturnedIsUnspent(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "label:id=1/s;client=2/s;urgent=1/s")
	settle(r, "it", fromShop+"true", t, start)
	upload := func() (paid Paid, by map[lanes.Lane]int) {
		by = map[lanes.Lane]int{}
		for _, result := range []string{"true", "false"} {
			l := logOf(t, fromShop+result)
			for range 10 {
				lane, _ := r.Route("it", l, start, &paid)
				by[lane]++
			}
		}
		return paid, by
	}
	want := map[lanes.Lane]int{lanes.Default: 10, lanes.Urgent: 10}
	for range 3 {
		paid, by := upload()
		if !maps.Equal(by, want) {
			t.Fatalf("lanes %v, want %v", by, want)
		}
		r.Return(&paid, start)
	}
	if _, by := upload(); !maps.Equal(by, want) {
		t.Fatalf("lanes %v, want %v", by, want)
	}
	if _, by := upload(); by[lanes.Bulk] != 20 {
		t.Errorf("lanes %v of an upload beyond the shares", by)
	}
}

func TestRouter_ReturnGivesOnce(t *testing.T) {
	t.Parallel()
	r, l := routed(t, "", "client=1/s"), logOf(t, fromShop+"true")
	count(r, 5, "it", fromShop+"true", t, start)
	var paid Paid
	for range 5 {
		r.Route("it", l, start, &paid)
	}
	r.Return(&paid, start)
	r.Return(&paid, start)
	if by, _ := count(r, 10, "it", fromShop+"true", t, start); by[lanes.Default] != 5 {
		t.Errorf("lanes %v after five of ten were spent", by)
	}
}

// TestRouter_ReturnFillsNoBucketBeyondFull gives back long after the bucket is full again.
func TestRouter_ReturnFillsNoBucketBeyondFull(t *testing.T) {
	t.Parallel()
	r, l := routed(t, "", "client=1/s"), logOf(t, fromShop+"true")
	var paid Paid
	for range 10 {
		r.Route("it", l, start, &paid)
	}
	later := start.Add(time.Hour)
	r.Return(&paid, later)
	if by, _ := count(r, 30, "it", fromShop+"true", t, later.Add(time.Nanosecond)); by[lanes.Default] != burstOf(1) {
		t.Errorf("lanes %v", by)
	}
}

// TestRouter_UrgentShareIsOfEachOPA: without a share of senders, a storm of one OPA leaves others of the same client urgent.
func TestRouter_UrgentShareIsOfEachOPA(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=denied", "urgent=1/s")
	settle(r, "proxy", fromShop+"false", t, start)
	settle(r, "proxy", fromBank+"false", t, start)
	if by, shaped := count(r, 100, "proxy", fromShop+"false", t, start); by[lanes.Urgent] != 10 || shaped[RuleUrgent] != 90 {
		t.Errorf("the storm: %v %v", by, shaped)
	}
	if by, _ := count(r, 5, "proxy", fromBank+"false", t, start); by[lanes.Urgent] != 5 {
		t.Errorf("the other: %v", by)
	}
}

func BenchmarkRoute(b *testing.B) {
	var paid Paid
	r := routed(b, "verdict=denied,error;path=admin/*;label:tenant=other", "label:id=1000000/s;label:tenant=10000000/s")
	l := logOf(b, `"labels":{"app":"opa","id":"00000011-1d3c-4f0e-9a3b-000000000001","tenant":"acme","version":"1.4.2"},"path":"http/authz/allow","result":{"allow":true}`)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Route("name opa", l, start.Add(time.Duration(i)*time.Microsecond), &paid)
		paid.Reset()
	}
}
