package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/record/home"
	"docket/internal/service/config"
)

func withLanes(lanes ...string) config.Settings {
	return config.Settings{KafkaTopic: "logs", KafkaGroup: "docket", ParkingGroup: "replay", LaneNames: lanes}
}

func TestWhereIs_NamesTheLane(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lanes []string
		topic string
		gone  bool
		lane  string
		says  string
	}{
		"no lanes":          {nil, "logs", false, "", "logs/0/7, produced"},
		"default":           {[]string{"urgent"}, "logs", false, "default", "logs/0/7 (lane default), produced"},
		"urgent":            {[]string{"urgent"}, "logs-urgent", false, "urgent", "logs-urgent/0/7 (lane urgent), produced"},
		"bulk's group":      {[]string{"bulk"}, "logs-bulk", false, "bulk", "group docket-bulk has committed nothing in this partition. No member in group docket-bulk: start the consumer."},
		"a removed lane":    {[]string{"bulk"}, "logs-urgent", true, "", "logs-urgent/0/7 is from another source topic than logs, logs-bulk; if it was the topic of a lane, DOCKET_LANES has to name the lane"},
		"deleted in a lane": {[]string{"urgent"}, "logs-urgent", true, "urgent", "logs-urgent/0/7 (lane urgent) was deleted from the source topic"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := verify.Place{Topic: c.topic, Offset: 7}
			found := func() *inspect.Whereabouts {
				return &inspect.Whereabouts{At: time.Now(), Records: []inspect.Record{{Place: place, Gone: c.gone, Committed: -1, Decisions: []inspect.Decision{{Place: place, ID: "d"}}}}}
			}
			var out, asJSON bytes.Buffer
			s := withLanes(c.lanes...)
			if showWhere(&out, s, found()); !strings.Contains(out.String(), c.says) {
				t.Errorf("%s", out.String())
			}
			var j struct{ Records []map[string]any }
			showWhereJSON(&asJSON, s, found())
			if err := json.Unmarshal(asJSON.Bytes(), &j); err != nil {
				t.Fatal(err)
			}
			if got, told := j.Records[0]["lane"]; told != (c.lane != "") || told && got != c.lane {
				t.Errorf("lane %v in %s", got, asJSON.String())
			}
		})
	}
}

func TestVerify_OneLinePerLane(t *testing.T) {
	t.Parallel()
	r := &inspect.Result{Records: 12, Unread: 3, Summary: &verify.Summary{Decisions: 20, Homes: map[home.Home]int{home.Row: 20}}, Lanes: []inspect.Lane{
		{Name: "default", Topic: "logs", Records: 10, Decisions: 18, Partitions: 2, Unread: 3}, {Name: "urgent", Topic: "logs-urgent", Records: 2, Decisions: 2, Partitions: 1},
	}}
	var out, asJSON bytes.Buffer
	showVerify(&out, "logs", r)
	for _, line := range []string{
		"logs (lane default): 10 records, 18 decisions in 2 partitions, up to the committed offsets; 3 records are not read yet\n",
		"logs-urgent (lane urgent): 2 records, 2 decisions in 1 partitions, up to the committed offsets; 0 records are not read yet\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
	if verifyJSON(&asJSON, r); !strings.Contains(asJSON.String(), `"lane": "urgent"`) {
		t.Errorf("%s", asJSON.String())
	}
	out.Reset()
	asJSON.Reset()
	r.Lanes = r.Lanes[:1]
	if showVerify(&out, "logs", r); !strings.HasPrefix(out.String(), "logs: 12 records, 20 decisions in 0 partitions, up to the committed offsets; 3 records are not read yet\n") {
		t.Errorf("without lanes: %s", out.String())
	}
	if verifyJSON(&asJSON, r); strings.Contains(asJSON.String(), `"lane`) {
		t.Errorf("without lanes: %s", asJSON.String())
	}
}

// TestVerify_NothingChecked: exit 0 would say that all is well.
func TestVerify_NothingChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		records, unread int64
		code            int
	}{{0, 3, Failed}, {1, 3, Done}, {0, 0, Done}} {
		r := &inspect.Result{Records: c.records, Unread: c.unread, Summary: &verify.Summary{}}
		var report bytes.Buffer
		if code, asJSON := showVerify(io.Discard, "logs", r), verifyJSON(&report, r); code != c.code || asJSON != c.code || !strings.Contains(report.String(), `"broken": false`) {
			t.Errorf("%+v: exit %d, as JSON %d\n%s", c, code, asJSON, report.String())
		}
		if _, _, broken := Verified(config.Settings{}, r); broken {
			t.Errorf("%+v counts as broken", c)
		}
		env := Env{Stdout: io.Discard, Stderr: io.Discard, AskVerify: func(context.Context, time.Time, []string, bool) (string, []byte, bool, error) {
			return "text", report.Bytes(), false, nil
		}}
		if code := verifyOfDesk(env, verifyFlags{}); code != c.code {
			t.Errorf("%+v: by a desk exit %d", c, code)
		}
	}
}

func TestVerify_FromALane(t *testing.T) {
	t.Parallel()
	env := []string{"DOCKET_DATABASE_URL=postgres://u@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_LANES=urgent"}
	for from, want := range map[string]string{
		"decision-logs-bulk/1/2":   "is not in the source topic decision-logs or decision-logs-urgent",
		"decision-logs-urgent/1/2": "check the broker addresses",
	} {
		if r := call(config.Consumer, env, "verify", "--from", from); !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d, %s", from, r.code, r.err)
		}
	}
}
