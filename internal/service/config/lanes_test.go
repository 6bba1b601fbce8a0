package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/consumer/lanes"
)

func TestLanes_NoneIsTheDefaultAlone(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Consumer, []string{database})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Lanes(); len(got) != 1 || got[0] != (Lane{lanes.Default, "decision-logs", "docket", 5000, 200 * time.Millisecond}) {
		t.Errorf("lanes %+v", got)
	}
}

func TestLanes_NamesFollowTheSource(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Consumer, []string{database, "DOCKET_LANES=bulk,urgent", "DOCKET_KAFKA_TOPIC=logs", "DOCKET_KAFKA_GROUP=g", "DOCKET_BULK_GROUP=slow", "DOCKET_KAFKA_URGENT_TOPIC=now"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Lane{
		{lanes.Default, "logs", "g", 5000, 200 * time.Millisecond},
		{lanes.Urgent, "now", "g-urgent", 500, 20 * time.Millisecond},
		{lanes.Bulk, "logs-bulk", "slow", 5000, 200 * time.Millisecond},
	}
	if got := s.Lanes(); !slices.Equal(got, want) {
		t.Errorf("lanes %+v, want %+v", got, want)
	}
	if !slices.Equal(s.SourceTopics(), []string{"logs", "now", "logs-bulk"}) || s.LaneOf("now") != lanes.Urgent || s.LaneOf("logs-bulk") != lanes.Bulk || s.LaneOf("other") != lanes.Default {
		t.Errorf("topics %v", s.SourceTopics())
	}
}

func TestSource_LaneOfATopic(t *testing.T) {
	t.Parallel()
	s := Settings{KafkaTopic: "logs", KafkaGroup: "docket"}
	if l, ours := s.Source("logs"); !ours || l.Lane != lanes.Default || s.LaneName("logs") != "" {
		t.Errorf("without lanes: %+v, %v, lane %q", l, ours, s.LaneName("logs"))
	}
	s.LaneNames = []string{"urgent"}
	for topic, want := range map[string]struct {
		ours        bool
		group, name string
	}{"logs": {true, "docket", "default"}, "logs-urgent": {true, "docket-urgent", "urgent"}, "logs-bulk": {false, "docket", ""}, "": {false, "docket", ""}} {
		if l, ours := s.Source(topic); ours != want.ours || l.Group != want.group || s.LaneName(topic) != want.name {
			t.Errorf("%q: %+v, %v, lane %q", topic, l, ours, s.LaneName(topic))
		}
	}
}

// TestLanes_Contradictions looks at each complaint by the variable that it is about and a word that it has. The words of
// several complaints about one variable are between bars.
func TestLanes_Contradictions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program Program
		env     []string
		want    map[string]string
	}{
		"unknown lane":        {Consumer, []string{"DOCKET_LANES=express"}, map[string]string{"DOCKET_LANES": "is not a lane"}},
		"a lane twice":        {Consumer, []string{"DOCKET_LANES=urgent,urgent"}, map[string]string{"DOCKET_LANES": "twice"}},
		"lanes, many faults":  {Consumer, []string{"DOCKET_LANES=urgnt,bulc,bulk,bulk"}, map[string]string{"DOCKET_LANES": `"urgnt" is not a lane | "bulc" is not a lane | "bulk" twice`}},
		"a lane thrice":       {Consumer, []string{"DOCKET_LANES=urgent,x,urgent,x,urgent"}, map[string]string{"DOCKET_LANES": `"x" is not a lane | "urgent" twice`}},
		"unknown, then topic": {Consumer, []string{"DOCKET_LANES=bulk,urgnt", "DOCKET_KAFKA_URGENT_TOPIC=x"}, map[string]string{"DOCKET_LANES": `"urgnt" is not a lane`, "DOCKET_KAFKA_URGENT_TOPIC": "does not name urgent"}},
		"twice, then rules":   {Collector, []string{"DOCKET_LANES=bulk,bulk", "DOCKET_COLLECTOR_URGENT=verdict=denied"}, map[string]string{"DOCKET_LANES": "twice", "DOCKET_COLLECTOR_URGENT": "does not name urgent"}},
		"unknown, no bulk":    {Collector, []string{"DOCKET_LANES=urgent,bulc", "DOCKET_COLLECTOR_SHARE=label:id=5/s"}, map[string]string{"DOCKET_LANES": "is not a lane", "DOCKET_COLLECTOR_SHARE": "does not name bulk"}},
		"topic of a home":     {Consumer, []string{"DOCKET_LANES=urgent", "DOCKET_KAFKA_URGENT_TOPIC=decision-logs-dlq"}, map[string]string{"DOCKET_KAFKA_URGENT_TOPIC": "DOCKET_KAFKA_DLQ_TOPIC"}},
		"topic by default":    {Consumer, []string{"DOCKET_LANES=bulk", "DOCKET_KAFKA_PARKING_TOPIC=decision-logs-bulk"}, map[string]string{"DOCKET_KAFKA_BULK_TOPIC": "DOCKET_KAFKA_PARKING_TOPIC"}},
		"two lanes, one":      {Collector, []string{"DOCKET_LANES=urgent,bulk", "DOCKET_KAFKA_BULK_TOPIC=decision-logs-urgent"}, map[string]string{"DOCKET_KAFKA_BULK_TOPIC": "DOCKET_KAFKA_URGENT_TOPIC"}},
		"no topic name":       {Consumer, []string{"DOCKET_LANES=urgent", "DOCKET_KAFKA_URGENT_TOPIC=a b"}, map[string]string{"DOCKET_KAFKA_URGENT_TOPIC": "not a topic name"}},
		"group of another":    {Consumer, []string{"DOCKET_LANES=urgent", "DOCKET_URGENT_GROUP=docket"}, map[string]string{"DOCKET_URGENT_GROUP": "DOCKET_KAFKA_GROUP"}},
		"group of the desk":   {Desk, []string{"DOCKET_LANES=bulk", "DOCKET_DESK_GROUP=docket-bulk"}, map[string]string{"DOCKET_DESK_GROUP": "DOCKET_BULK_GROUP"}},
		"topic, no lane":      {Consumer, []string{"DOCKET_LANES=bulk", "DOCKET_KAFKA_URGENT_TOPIC=x"}, map[string]string{"DOCKET_KAFKA_URGENT_TOPIC": "does not name urgent"}},
		"rules, no lane":      {Collector, []string{"DOCKET_COLLECTOR_URGENT=verdict=denied"}, map[string]string{"DOCKET_COLLECTOR_URGENT": "does not name urgent"}},
		"shares, no lane":     {Collector, []string{"DOCKET_LANES=urgent", "DOCKET_COLLECTOR_SHARE=label:id=5/s"}, map[string]string{"DOCKET_COLLECTOR_SHARE": "does not name bulk"}},
		"urgent, no rule":     {Collector, []string{"DOCKET_LANES=urgent", "DOCKET_COLLECTOR_SHARE=urgent=5/s"}, map[string]string{"DOCKET_COLLECTOR_SHARE": "has no rule"}},
		"rules and shares":    {Collector, []string{"DOCKET_LANES=urgent", "DOCKET_COLLECTOR_URGENT=verdict=deny", "DOCKET_COLLECTOR_SHARE=label:id=5"}, map[string]string{"DOCKET_COLLECTOR_URGENT": "entry 1", "DOCKET_COLLECTOR_SHARE": "entry 1"}},
		"low not below":       {Consumer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_LOW_ROWS=450"}, map[string]string{"DOCKET_LIMIT_LOW_ROWS": "is not lower"}},
		"burst above":         {Replayer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_BURST=451"}, map[string]string{"DOCKET_LIMIT_BURST": "is more than"}},
		"nothing to limit":    {Desk, []string{"DOCKET_LIMIT_LOW_ROWS=5", "DOCKET_LIMIT_BURST=5", "DOCKET_LIMIT_CALENDAR=19-23=low:150", "DOCKET_REDIS_URL=redis://r"}, map[string]string{"DOCKET_LIMIT_LOW_ROWS": "without", "DOCKET_LIMIT_BURST": "without", "DOCKET_LIMIT_CALENDAR": "without"}},
		"no room for urgent":  {Consumer, []string{"DOCKET_LIMIT_ROWS=1"}, map[string]string{"DOCKET_LIMIT_ROWS": "set at least 2"}},
		"calendar, form":      {Consumer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_CALENDAR=19-23:150"}, map[string]string{"DOCKET_LIMIT_CALENDAR": "is not HOUR-HOUR"}},
		"calendar, form only": {Consumer, []string{"DOCKET_LIMIT_CALENDAR=nine"}, map[string]string{"DOCKET_LIMIT_CALENDAR": "is not HOUR-HOUR"}},
		"calendar not below":  {Consumer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_CALENDAR=19-23=low:450"}, map[string]string{"DOCKET_LIMIT_CALENDAR": "is not lower"}},
		"redis, scheme":       {Consumer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_LOW_ROWS=450", "DOCKET_REDIS_URL=http://u:hunter2@r:6379"}, map[string]string{"DOCKET_LIMIT_LOW_ROWS": "", "DOCKET_REDIS_URL": "scheme"}},
		"redis, host":         {Replayer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://:6379"}, map[string]string{"DOCKET_REDIS_URL": "names no host"}},
		"redis, port":         {Replayer, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://r:0"}, map[string]string{"DOCKET_REDIS_URL": "wrong port"}},
		"redis, database":     {Desk, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://r/x"}, map[string]string{"DOCKET_REDIS_URL": "number of a database"}},
		"redis, option":       {Desk, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://r/0?db=3"}, map[string]string{"DOCKET_REDIS_URL": "other than addr"}},
		"redis, addr":         {Desk, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://r?addr=b"}, map[string]string{"DOCKET_REDIS_URL": "not host:port"}},
		"redis, cluster of 3": {Desk, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://r/3?addr=b:6379"}, map[string]string{"DOCKET_REDIS_URL": "only 0"}},
		"redis, no URL":       {Desk, []string{"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://u:hunter2%@r"}, map[string]string{"DOCKET_REDIS_URL": "is not a URL"}},
		"all of them at once": {Consumer, []string{"DOCKET_LANES=urgent", "DOCKET_URGENT_GROUP=docket", "DOCKET_KAFKA_URGENT_TOPIC=decision-logs", "DOCKET_LIMIT_ROWS=1", "DOCKET_LIMIT_LOW_ROWS=2"}, map[string]string{"DOCKET_URGENT_GROUP": "", "DOCKET_KAFKA_URGENT_TOPIC": "", "DOCKET_LIMIT_LOW_ROWS": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := c.env
			if c.program != Collector {
				env = append(env, database)
			}
			_, _, err := Load(c.program, env)
			var complaints Complaints
			if !errors.As(err, &complaints) {
				t.Fatalf("no complaints: %v", err)
			}
			for _, got := range complaints {
				if strings.Contains(got.Text, "hunter2") {
					t.Errorf("a password shows: %s", got.Text)
				}
				words, ok := c.want[got.Variable]
				word, others, more := strings.Cut(words, " | ")
				if !ok || !strings.Contains(got.Text, word) {
					t.Errorf("unexpected: %s %s", got.Variable, got.Text)
				}
				if delete(c.want, got.Variable); more {
					c.want[got.Variable] = others
				}
			}
			for variable := range c.want {
				t.Errorf("no complaint about %s: %v", variable, err)
			}
		})
	}
}

// TestLimits_RedisForClaimsAlone has programs share their environment with a desk that uses Redis for claims.
func TestLimits_RedisForClaimsAlone(t *testing.T) {
	t.Parallel()
	for _, p := range []Program{Consumer, Replayer, Desk} {
		s, _, err := Load(p, []string{database, "DOCKET_REDIS_URL=redis://r", "DOCKET_ARCHIVE_TO=/srv/archive", "DOCKET_CACHE_DIR=/var/cache/docket"})
		if err != nil || s.Limited() || s.RedisURL == "" {
			t.Error(p, s.RedisURL, err)
		}
	}
	if s, _, err := Load(Desk, []string{database, "DOCKET_REDIS_URL=redis://r"}); err != nil || s.Limited() {
		t.Error("without any use:", err)
	}
}

func TestLimits_OfTheSettings(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"alone":   nil,
		"redis":   {"DOCKET_REDIS_URL=redis://u:p@r:6379/2"},
		"TLS":     {"DOCKET_REDIS_URL=rediss://r"},
		"cluster": {"DOCKET_REDIS_URL=redis://:p@r1:6379?addr=r2:6379&addr=r3:6379"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := Load(Consumer, append([]string{database, "DOCKET_LIMIT_ROWS=450", "DOCKET_LIMIT_CALENDAR=19-4=low:150"}, env...))
			if err != nil {
				t.Fatal(err)
			}
			p := s.Limits()
			if !s.Limited() || p.All != 450 || p.Low != 405 || p.Burst != 45 || p.LowAt(time.Unix(3*3600, 0)) != 150 {
				t.Errorf("limits %+v", p)
			}
		})
	}
	s, _, err := Load(Consumer, []string{database})
	if err != nil || s.Limited() {
		t.Errorf("a limit although none is set: %v", err)
	}
}
