package collector

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"docket/internal/collector/routing"
	"docket/internal/consumer/lanes"
	"docket/internal/record/envelope"
	"docket/internal/record/redact"
	"docket/internal/testkit/kafkatest"
)

const (
	urgentTopic = logs + "-urgent"
	bulkTopic   = logs + "-bulk"
)

// withLanes has a collector route to three lanes by the texts of the two settings.
func withLanes(t testing.TB, rules, shares string) func(*Config) {
	t.Helper()
	r, wrong := routing.ParseRules(rules)
	s, alsoWrong := routing.ParseShares(shares)
	if len(wrong)+len(alsoWrong) > 0 {
		t.Fatal(wrong, alsoWrong)
	}
	return func(c *Config) {
		c.Lanes = map[lanes.Lane]string{lanes.Default: logs, lanes.Urgent: urgentTopic, lanes.Bulk: bulkTopic}
		c.Routing = routing.Config{Rules: r, Shares: s, Urgent: true, Bulk: true}
	}
}

// decided is a decision of a sender; allowed or denied.
func decided(id, sender string, allowed bool) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-01T12:00:00Z","labels":{"id":%q},"requested_by":"10.0.0.1:4711","path":"a/b","result":{"allow":%v}}`, id, sender, allowed)
}

// floods has a sender spend a share of 1/s and more, in one moment.
func (w *world) floods(t testing.TB, sender string) {
	t.Helper()
	var parts []string
	for i := range 40 {
		parts = append(parts, decided(fmt.Sprint("first-", i), sender, true))
	}
	w.post(t, strings.Join(parts, "\n"))
}

// TestLanes_FloodAndAnothersDenial has one service flood, by the same client as another. The other one's denial is urgent,
// and its other decisions are in the default lane once it is settled. Nothing is lost, and all uploads are acknowledged.
func TestLanes_FloodAndAnothersDenial(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(4, logs, urgentTopic, bulkTopic), kfake.SeedTopics(1, dlq))
	w := onKafka(t, c, kafkatest.Timeout, withLanes(t, "verdict=denied", "label:id=1/s"))
	want, topic := map[string]bool{}, map[string]string{}
	upload := func(n int, decision func(i int) string) {
		var parts []string
		for i := range n {
			parts = append(parts, decision(i))
			want[parts[i]] = true
		}
		if a := w.post(t, gz("["+strings.Join(parts, ",")+"]"), "Content-Encoding", "gzip"); a.Code != http.StatusOK {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
	}
	for n := range 5 { // noise settles its sender, and spends its share
		upload(200, func(i int) string { return decided(fmt.Sprintf("noise-%d-%d", n, i), "noisy", true) })
	}
	upload(12, func(i int) string { return decided(fmt.Sprint("quiet-", i), "quiet", true) })
	upload(3, func(i int) string { return decided(fmt.Sprint("denial-", i), "quiet", i != 1) })
	account := map[string]int{}
	for _, each := range []string{logs, urgentTopic, bulkTopic} {
		for _, r := range c.ReadAll(t, each) {
			if !want[string(r.Value)] || topic[string(r.Value)] != "" || string(r.Key) != "10.0.0.1:4711" {
				t.Errorf("%s has %q by %q", each, r.Value, r.Key)
			}
			topic[string(r.Value)] = each
			account[each]++
		}
	}
	if len(topic) != len(want) || account[bulkTopic] < 900 || account[urgentTopic] != 1 {
		t.Errorf("%d of %d, %v", len(topic), len(want), account)
	}
	if got := topic[decided("denial-1", "quiet", false)]; got != urgentTopic {
		t.Errorf("the denial is in %q", got)
	}
	if got := topic[decided("quiet-11", "quiet", true)]; got != logs {
		t.Errorf("a settled sender within its share is in %q", got)
	}
	for lane, each := range map[string]string{"default": logs, "urgent": urgentTopic, "bulk": bulkTopic} {
		if got := w.metric(t, "docket_collector_routed_total", lane); int(got) != account[each] {
			t.Errorf("%v counted for %s, where %d are", got, lane, account[each])
		}
	}
	if got := w.metric(t, "docket_collector_shaped_total", "label:id"); int(got) != account[bulkTopic] {
		t.Errorf("%v counted as shaped", got)
	}
	if got := w.metric(t, "docket_collector_decisions_total", "topic"); int(got) != len(want) {
		t.Errorf("%v counted in all", got)
	}
	if s := w.Routing(); len(s.Shaped) == 0 || s.Shaped[0].Client != "192.0.2.1" || strings.Contains(fmt.Sprint(s), "noisy") {
		t.Errorf("%+v", s)
	}
}

// TestLanes_200OnlyIfEachLaneTookItsPart has the lanes refuse at random. An upload that comes again until it is taken has all of
// its decisions in some lane.
func TestLanes_200OnlyIfEachLaneTookItsPart(t *testing.T) {
	t.Parallel()
	test := t
	rapid.Check(t, func(t *rapid.T) {
		refuses := map[string]int{}
		for _, topic := range []string{logs, urgentTopic, bulkTopic, dlq} {
			refuses[topic] = rapid.IntRange(0, 2).Draw(t, "refusals of "+topic)
		}
		w := newWorld(test, withLanes(test, "verdict=denied;path=x/*", "label:id=1/s;urgent=1/s"))
		w.kafka.answer = func(r *kgo.Record) error {
			if refuses[r.Topic] > 0 {
				refuses[r.Topic]--
				return kerr.UnknownTopicOrPartition
			}
			return nil
		}
		for n := range rapid.IntRange(1, 4).Draw(t, "uploads") {
			var parts []string
			for i := range rapid.IntRange(1, 60).Draw(t, "decisions") {
				part := decided(fmt.Sprintf("%d-%d", n, i), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "sender"), rapid.Bool().Draw(t, "allowed"))
				if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
					part = strings.Replace(part, "timestamp", "time", 1)
				}
				parts = append(parts, part)
			}
			code := 0
			for tries := 0; code != 200; tries++ {
				if code = w.postAlone(test, "["+strings.Join(parts, ",")+"]"); code != 200 && code != 503 || tries > 10 {
					t.Fatalf("answered %d", code)
				}
			}
			there := map[string]bool{}
			for _, r := range w.kafka.kept {
				there[string(r.Value)] = true
			}
			for _, part := range parts {
				if !there[part] {
					t.Fatalf("answered 200 without %s", part)
				}
			}
		}
	})
}

func TestLanes_MissingTopicIs503AndNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLanes(t, "verdict=denied", ""))
	w.kafka.answer = func(r *kgo.Record) error {
		if r.Topic == urgentTopic {
			return kerr.UnknownTopicOrPartition
		}
		return nil
	}
	a := w.post(t, "["+decided("a", "x", true)+","+decided("b", "x", false)+"]")
	if p := problem(t, a); a.Code != http.StatusServiceUnavailable || p.Reason != reasonKafka {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if s := w.State(); s.Ready || s.Reason != stateTopicMissing || s.Topic != urgentTopic {
		t.Errorf("%+v", s)
	}
	if a := w.post(t, decided("c", "x", true)); a.Code != http.StatusOK {
		t.Errorf("a lane that is there: %d", a.Code)
	}
	w.kafka.answer = nil
	if a := w.post(t, decided("b", "x", false)); a.Code != http.StatusOK || !w.State().Ready || len(w.kafka.in(urgentTopic)) != 1 {
		t.Errorf("once the topic is there: %d, %+v", a.Code, w.State())
	}
}

// TestLanes_DeadLetterNamesItsLane looks at what the letters say, and that shares change nothing of it.
func TestLanes_DeadLetterNamesItsLane(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa-1:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, withLanes(t, "verdict=denied", "label:id=1/s;urgent=1/s"), func(c *Config) {
		c.Auth = Auth{Tokens: tokens, Rights: Rights{"opa-1": {IDs: Patterns{"mine*"}}}}
	})
	w.kafka.answer = func(r *kgo.Record) error {
		if r.Topic != dlq && strings.Contains(inflated(r.Value), "large-") {
			return kerr.MessageTooLarge
		}
		return nil
	}
	unread := strings.Replace(decided("z", "mine", false), "timestamp", "time", 1)
	upload := "[" + strings.Join([]string{decided("large-a", "mine", true), decided("large-b", "mine", false), decided("foreign", "other", false), unread}, ",") + "]"
	ids := map[string]bool{}
	for range 40 { // in the end all shares are spent
		if a := w.post(t, upload, "Authorization", "Bearer "+secret); a.Code != http.StatusOK {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
	}
	want := map[string]string{"large-a": logs, "large-b": urgentTopic, "foreign": urgentTopic, "z": logs}
	for _, r := range w.kafka.in(dlq) {
		id := strings.Split(inflated(r.Value), `"`)[3]
		if got := envelope.OpenDead(r).Origin.Topic; got != want[id] {
			t.Errorf("%s was meant for %s, and its letter says %s", id, want[id], got)
		}
		ids[envelope.IDOf(r)] = true
	}
	if len(ids) != len(want) {
		t.Errorf("%d ids of %d decisions", len(ids), len(want))
	}
	if got := w.metric(t, "docket_collector_shaped_total", "label:id"); got == 0 {
		t.Error("no share was spent")
	}
}

// TestLanes_RefusedDecisionSpendsNoShare: a client cannot spend the share of another by decisions that it may not upload.
func TestLanes_RefusedDecisionSpendsNoShare(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("evil:" + secret + " good:" + secret + "2")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, withLanes(t, "", "label:id=1/s"), func(c *Config) {
		c.Auth = Auth{Tokens: tokens, Rights: Rights{"evil": {IDs: Patterns{"evil"}}, "good": {IDs: Patterns{"good"}}}}
	})
	for i := range 100 {
		w.post(t, decided(fmt.Sprint(i), "good", true), "Authorization", "Bearer "+secret)
	}
	for i := range 10 {
		w.post(t, decided(fmt.Sprint("own-", i), "good", true), "Authorization", "Bearer "+secret+"2")
	}
	if kept := len(w.kafka.in(logs)); kept != 10 || len(w.kafka.in(dlq)) != 100 {
		t.Errorf("%d kept in the default lane, %d dead", kept, len(w.kafka.in(dlq)))
	}
}

// TestLanes_MaskedLabelRoutesAndIsNotShown: rules look at what OPA sent, and nothing of a masked value leaves the process.
func TestLanes_MaskedLabelRoutesAndIsNotShown(t *testing.T) {
	t.Parallel()
	rules, err := redact.Parse(nil, []string{"/labels/id"})
	if err != nil {
		t.Fatal(err)
	}
	for _, masked := range []bool{true, false} {
		w := newWorld(t, withLanes(t, "label:id=vip", "label:id=1/s"), func(c *Config) {
			if masked {
				c.Redact = rules
			}
		})
		w.post(t, decided("a", "vip", true))
		w.floods(t, "hush")
		w.post(t, decided("b", "other", true)+"\n"+decided("c", "other", true))
		urgent := w.kafka.in(urgentTopic)
		if len(urgent) != 1 || strings.Contains(string(urgent[0].Value), "vip") == masked {
			t.Errorf("masked %v: urgent %v", masked, urgent)
		}
		s := w.Routing()
		if len(s.Shaped) == 0 || strings.Contains(fmt.Sprint(s), "hush") || strings.Contains(fmt.Sprint(s), "sha256:") == masked {
			t.Errorf("masked %v: %+v", masked, s)
		}
	}
}

func TestLanes_IdleRuleIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withLanes(t, "verdict=denied;path=a/*,admni/*", "label:tenat=5/s"))
		for range 5 {
			w.post(t, decided("a", "x", false))
			w.post(t, decided("b", "x", true))
			time.Sleep(30 * time.Minute)
		}
		said := w.log.String()
		if strings.Count(said, "routing rule matched nothing") != 2 || !strings.Contains(said, `"entry":2,"rule":"path","value":2,"since"`) || !strings.Contains(said, `"rule":"label:tenat","since"`) {
			t.Errorf("log: %s", said)
		}
		if s := w.Routing(); len(s.Idle) != 2 || !w.State().Ready {
			t.Errorf("%+v", s)
		}
	})
}

func TestLanes_NoneChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(t, decided("a", "x", false))
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.Contains(f.GetName(), "routed") || strings.Contains(f.GetName(), "shaped") {
			t.Errorf("there is %s", f.GetName())
		}
	}
	if w.Routing() != nil || len(w.kafka.in(logs)) != 1 {
		t.Errorf("%+v", w.Routing())
	}
}

func TestLanes_EachNeedsItsTopic(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"", logs, dlq} {
		cfg := newWorld(t).cfg
		withLanes(t, "", "")(&cfg)
		cfg.Lanes = maps.Clone(cfg.Lanes)
		cfg.Lanes[lanes.Bulk] = topic
		if err := cfg.validate(); err == nil || !strings.Contains(err.Error(), "bulk") {
			t.Errorf("%q: %v", topic, err)
		}
	}
}

// TestLanes_OrderIsKeptWithinALane looks at the decisions of one key, by the lane.
func TestLanes_OrderIsKeptWithinALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLanes(t, "verdict=denied", "label:id=3/s"))
	for i := range 100 {
		w.post(t, "["+decided(fmt.Sprintf("%03d-a", i), "x", i%3 > 0)+","+decided(fmt.Sprintf("%03d-b", i), "x", i%5 > 0)+"]")
	}
	all := 0
	for _, topic := range []string{logs, urgentTopic, bulkTopic} {
		var ids []string
		for _, r := range w.kafka.in(topic) {
			ids = append(ids, strings.Split(string(r.Value), `"`)[3])
		}
		if all += len(ids); !slices.IsSorted(ids) || len(ids) == 0 {
			t.Errorf("%s: %v", topic, ids)
		}
	}
	if all != 200 {
		t.Errorf("%d of 200", all)
	}
}

// TestLanes_UploadThatKafkaRefusedSpendsNoShare: OPA sends such an upload again and again while Kafka is away.
func TestLanes_UploadThatKafkaRefusedSpendsNoShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLanes(t, "verdict=denied", "client=1/s;urgent=1/s"))
	var parts []string
	for i := range 10 {
		parts = append(parts, decided(fmt.Sprint("allowed-", i), "shop", true), decided(fmt.Sprint("denied-", i), "shop", false))
	}
	upload := strings.Join(parts, "\n")
	w.kafka.answer = func(*kgo.Record) error { return kerr.UnknownTopicOrPartition }
	for range 30 {
		if code := w.postAlone(t, upload); code != http.StatusServiceUnavailable {
			t.Fatalf("answered %d", code)
		}
	}
	w.kafka.answer = nil
	if code := w.postAlone(t, upload); code != http.StatusOK || len(w.kafka.in(bulkTopic)) > 0 || len(w.kafka.in(urgentTopic)) != 10 || len(w.kafka.in(logs)) != 10 {
		t.Errorf("answered %d; %d urgent, %d default, %d bulk", code, len(w.kafka.in(urgentTopic)), len(w.kafka.in(logs)), len(w.kafka.in(bulkTopic)))
	}
}
