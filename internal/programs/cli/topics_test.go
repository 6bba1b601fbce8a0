package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/audit/check"
	"docket/internal/kafka"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

// createOn calls `docket topics create`, with no database anywhere.
func createOn(c *kafkatest.Cluster, environ []string, args ...string) result {
	var out, err buffer
	brokers := "127.0.0.1:1"
	if c != nil {
		brokers = strings.Join(c.Brokers(), ",")
	}
	env := Env{Program: config.Desk, Name: "docket topics", Environ: append([]string{"DOCKET_KAFKA_BROKERS=" + brokers}, environ...), Stdout: &out, Stderr: &err}
	code := CreateTopics().Do(env, args)
	return result{code, out.String(), err.String()}
}

// topicsIn are the topics of a cluster with their partitions.
func topicsIn(t *testing.T, c *kafkatest.Cluster) map[string]int {
	t.Helper()
	client := c.Client(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	all, err := kadm.NewClient(client).ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for name, one := range all {
		found[name] = len(one.Partitions)
	}
	return found
}

func TestTopicsCreate_PlansCreatesRepeats(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.NumBrokers(3))
	lanes := []string{"DOCKET_LANES=urgent"}
	r := createOn(c, lanes, "--dry-run", "--partitions", "4")
	if r.code != Done || !strings.Contains(r.out, "create  topic decision-logs-urgent: 4 partitions, replication 3") || !strings.HasSuffix(r.out, "dry run: nothing was created\n") {
		t.Fatalf("%+v", r)
	}
	if found := topicsIn(t, c); len(found) != 0 {
		t.Fatalf("a dry run created %v", found)
	}
	r = createOn(c, lanes, "--partitions", "4")
	plan, created := strings.Index(r.out, "create  topic decision-logs-parking:"), strings.Index(r.out, "topic decision-logs: created")
	if r.code != Done || plan < 0 || created < plan {
		t.Fatalf("%+v", r)
	}
	found := topicsIn(t, c)
	for _, name := range []string{"decision-logs", "decision-logs-urgent", "decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq"} {
		if found[name] != 4 {
			t.Errorf("%s has %d partitions", name, found[name])
		}
	}
	if r = createOn(c, lanes); r.code != Done || strings.Contains(r.out, "create ") || !strings.HasSuffix(r.out, "nothing to create: all topics exist\n") {
		t.Errorf("again: %+v", r)
	}
}

func TestTopicsCreate_NeverChangesATopic(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.NumBrokers(3), kfake.SeedTopics(2, "decision-logs"))
	if err := c.CreateTopic("decision-logs-parking", 2, map[string]string{"retention.ms": "60000"}); err != nil {
		t.Fatal(err)
	}
	r := createOn(c, nil, "--partitions", "6")
	for _, want := range []string{
		"fail    topic decision-logs-parking: kept for 1m0s", "set retention.ms to", "To change a setting: kafka-configs.sh --bootstrap-server " + c.Brokers()[0], "warn    topic decision-logs: 2 partitions, not 6",
		"topic decision-logs-dlq: created",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	found := topicsIn(t, c)
	if r.code != Failed || found["decision-logs"] != 2 || found["decision-logs-parking"] != 2 || found["decision-logs-dlq"] != 6 {
		t.Errorf("exit %d, %v", r.code, found)
	}
}

func TestTopicsCreate_JSON(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.NumBrokers(3), kfake.SeedTopics(12, "decision-logs"))
	for _, step := range []struct {
		args   []string
		result string
	}{{[]string{"--json", "--dry-run"}, "planned"}, {[]string{"--json"}, "created"}, {[]string{"--json"}, "exists"}} {
		r := createOn(c, nil, step.args...)
		var got jsonTopics
		if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != Done || got.Failed || len(got.Items) != 4 {
			t.Fatalf("%v: %v, %+v", step.args, err, r)
		}
		for _, one := range got.Items {
			want := step.result
			if one.Name == "decision-logs" {
				want = "exists"
			}
			if one.Result != want || one.Findings == nil {
				t.Errorf("%v: %+v", step.args, one)
			}
		}
	}
}

func TestTopicsCreate_ExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ, args []string
		code          int
		says          string
	}{
		"no brokers":         {nil, nil, Failed, "unreachable"},
		"no partitions":      {nil, []string{"--partitions", "0"}, Misuse, "must be a number from 1"},
		"too many":           {nil, []string{"--partitions", "1000000"}, Misuse, "must be a number from 1"},
		"two wrong settings": {[]string{"DOCKET_LANES=slow", "DOCKET_KAFKA_TLS=perhaps"}, nil, Misuse, "DOCKET_KAFKA_TLS"},
		"fewer than shards":  {[]string{"DOCKET_SHARDS=a=0-3,b=4-7"}, []string{"--partitions", "6"}, Misuse, "DOCKET_SHARDS has 8 partitions"},
		"an argument":        {nil, []string{"decision-logs"}, Misuse, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := createOn(nil, c.environ, c.args...); r.code != c.code || !strings.Contains(r.err, c.says) || r.out != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestTopicsCreate_OneBroker(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.NumBrokers(1))
	for _, args := range [][]string{nil, {"--dry-run"}, {"--json"}} {
		if r := createOn(c, nil, args...); r.code != Failed || !strings.Contains(r.err, "1 broker is up, and new topics need 3") || !strings.Contains(r.err, "--replication 1") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if found := topicsIn(t, c); len(found) != 0 {
		t.Fatalf("created %v", found)
	}
	if r := createOn(c, nil, "--replication", "1"); r.code != Done || !strings.Contains(r.out, "topic decision-logs: created") {
		t.Errorf("%+v", r)
	}
	if r := createOn(c, nil); r.code != Done || !strings.HasSuffix(r.out, "nothing to create: all topics exist\n") {
		t.Errorf("%+v", r)
	}
}

// Nobody may take a topic that cannot be seen for one that exists.
func TestTopicsCreate_UnseenIsUnknown(t *testing.T) {
	t.Parallel()
	plans := []check.TopicPlan{
		{NewTopic: kafka.NewTopic{Name: "unseen"}, Unknown: true, Findings: []check.Result{{Level: check.Fail, What: "topic unseen", Detail: "no permission", Hint: "grant it"}}},
		{NewTopic: kafka.NewTopic{Name: "there"}},
	}
	got := topicsOf(plans, nil, false, true)
	if got.Items[0].Result != "unknown" || len(got.Items[0].Findings) != 1 || got.Items[1].Result != "exists" {
		t.Errorf("%+v", got)
	}
	var out buffer
	if showCreated(&out, plans, nil, false); strings.Contains(out.String(), "all topics exist") {
		t.Errorf("%q", out.String())
	}
}

func TestShowCreated_CreatedMeanwhile(t *testing.T) {
	t.Parallel()
	plans := []check.TopicPlan{{NewTopic: kafka.NewTopic{Name: "other"}}, {NewTopic: kafka.NewTopic{Name: "mine"}, Create: true}}
	var out buffer
	showCreated(&out, plans, []check.Result{
		{Level: check.OK, What: "topic other", Detail: "exists: another process created it meanwhile"}, {Level: check.Fail, What: "topic mine", Detail: "refused", Hint: "ask"},
		{Level: check.Fail, What: "topic other", Detail: "kept for 1m0s", Hint: "set it"},
	}, false)
	if want := "topic other: exists: another process created it meanwhile\nnot created: topic mine: refused; ask\nfail    topic other: kept for 1m0s; set it\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}
