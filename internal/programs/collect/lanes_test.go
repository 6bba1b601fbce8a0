package collect

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

func denied(id string) string {
	return strings.Replace(decision(id), `"result":true`, `"result":false`, 1)
}

// TestLanes_SettingsReachTheTopics starts the program with two lanes. The topic of one is missing at first.
func TestLanes_SettingsReachTheTopics(t *testing.T) {
	t.Parallel()
	k := kafkatest.New(t, kfake.SeedTopics(1, "decision-logs", "decision-logs-dlq", "slow"))
	r := run(t, settings(t, k.Brokers(), "DOCKET_LANES=urgent,bulk", "DOCKET_KAFKA_BULK_TOPIC=slow", "DOCKET_COLLECTOR_URGENT=verdict=denied",
		"DOCKET_COLLECTOR_SHARE=client=1/s;urgent=5/s"), Options{})
	r.becomes(http.StatusOK, `"routing":{"idle":[],"shaped":[]}`)
	if resp, body := r.upload("", decision("1"), denied("2")); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `"kafka"`) {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if _, body := r.readyz(); !strings.Contains(body, `"topic":"decision-logs-urgent"`) || !strings.Contains(body, "kafka_topic_missing") {
		t.Errorf("%s", body)
	}
	if err := k.CreateTopic("decision-logs-urgent", 1, nil); err != nil {
		t.Fatal(err)
	}
	kafkatest.Eventually(t, "the upload to be taken", func() bool {
		resp, _ := r.upload("", decision("1"), denied("2"))
		return resp.StatusCode == http.StatusOK
	})
	var many []string
	for range 30 {
		many = append(many, decision("3"))
	}
	if resp, body := r.upload("", many...); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	urgent, bulk := k.ReadAll(t, "decision-logs-urgent"), k.ReadAll(t, "slow")
	if len(urgent) == 0 || string(urgent[0].Value) != denied("2") || len(bulk) < 20 {
		t.Errorf("%d urgent, %d bulk", len(urgent), len(bulk))
	}
	r.becomes(http.StatusOK, `"shaped":[{"rule":"client","client":"127.0.0.1","decisions":`)
}

func TestLanes_ComplaintsComeWithOthers(t *testing.T) {
	t.Parallel()
	_, _, err := config.LoadWith(config.Collector, []string{"DOCKET_LANES=urgent,bulk", "DOCKET_COLLECTOR_URGENT=verdict=no;x=1", "DOCKET_COLLECTOR_SHARE=label:id=2", "DOCKET_COLLECTOR_KEY=x"}, Judges())
	var all config.Complaints
	if !errors.As(err, &all) || len(all) != 4 {
		t.Errorf("%v", err)
	}
}
