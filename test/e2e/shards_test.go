//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// shardNames are the shards of the test. Each has two partitions, in this order.
var shardNames = []string{"a", "b", "c"}

// shardSystem is three Postgres servers behind one topic.
type shardSystem struct {
	*system
	servers []*testenv.PostgresServer
	urls    []string
	client  *kgo.Client
	sent    []string // ids, the oldest first
	began   time.Time
}

func newShards(t *testing.T) *shardSystem {
	t.Helper()
	k := testenv.Kafka(t)
	s := &shardSystem{system: bareSystem(t, k, ""), began: time.Now().UTC().Truncate(time.Millisecond)}
	k.CreateTopic(t, s.places.Topic, 6, nil)
	var entries []string
	for _, name := range shardNames {
		server := testenv.OwnPostgres(t)
		s.servers = append(s.servers, server)
		s.urls = append(s.urls, server.Database(t))
		entries = append(entries, name+"="+s.urls[len(s.urls)-1])
		for _, home := range []string{s.places.ParkingTopic, s.places.DLQTopic, s.places.ParkingDLQ} {
			k.CreateTopic(t, home+"-"+name, 2, nil)
		}
	}
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "DOCKET_DATABASE_URL=") })
	s.env = append(s.env, "DOCKET_SHARDS=a=0-1,b=2-3,c=4-5", "DOCKET_SHARD_URLS="+strings.Join(entries, " "), "DOCKET_KAFKA_SESSION_TIMEOUT=6s")
	var err error
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic), kgo.AlwaysRetryEOF()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	if out, code := s.command(nil, "consumer", "migrate"); code != 0 || strings.Count(out, "the schema is up to date") != 3 {
		t.Fatalf("consumer migrate ended with %d:\n%s", code, out)
	}
	return s
}

// produce sends n decisions, keyed by their ids. Every tenth comes twice.
func (s *shardSystem) produce(n int) {
	s.t.Helper()
	var records []*kgo.Record
	for range n {
		i := len(s.sent)
		id := fmt.Sprintf("shard-%06d", i)
		at := s.began.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		r := &kgo.Record{Key: []byte(id), Value: fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q,"path":"e2e/p%d","result":%t}`, id, at, i%3, i%5 > 0)}
		records = append(records, r)
		if i%10 == 0 {
			records = append(records, &kgo.Record{Key: r.Key, Value: r.Value})
		}
		s.sent = append(s.sent, id)
	}
	if err := s.client.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatalf("produce: %v", err)
	}
}

// stored returns how many rows a shard has, and how many of them are of partitions of others.
func (s *shardSystem) stored(i int) (rows, foreign int, err error) {
	ctx := s.t.Context()
	conn, err := pgx.Connect(ctx, s.urls[i])
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE source_partition NOT IN ($1, $2)) FROM decision_logs", 2*i, 2*i+1).Scan(&rows, &foreign)
	return rows, foreign, err
}

// committed waits until the groups of these shards have committed all of their partitions, and nothing else.
func (s *shardSystem) committed(of ...int) {
	s.t.Helper()
	admin := kadm.NewClient(s.client)
	eventually(s.t, patience, fmt.Sprintf("the shards %v have committed everything", of), func() error {
		ends, err := admin.ListEndOffsets(s.t.Context(), s.places.Topic)
		if err != nil {
			return err
		}
		for _, i := range of {
			at, err := admin.FetchOffsets(s.t.Context(), s.places.Group+"-"+shardNames[i])
			if err != nil {
				return err
			}
			for p := range int32(6) {
				end, _ := ends.Lookup(s.places.Topic, p)
				done, there := at.Lookup(s.places.Topic, p)
				if own := int(p)/2 == i; own != there || own && done.At < end.Offset {
					return fmt.Errorf("shard %s, partition %d: committed %d of %d, %v", shardNames[i], p, done.At, end.Offset, there)
				}
			}
		}
		return nil
	})
}

// once checks that all that was sent has one row, in the shard of its partition.
func (s *shardSystem) once() {
	s.t.Helper()
	all := 0
	for i, name := range shardNames {
		rows, foreign, err := s.stored(i)
		if err != nil || foreign > 0 || rows == 0 {
			s.t.Errorf("shard %s has %d rows, %d of partitions of others: %v", name, rows, foreign, err)
		}
		all += rows
	}
	if all != len(s.sent) {
		s.t.Errorf("the shards have %d rows, and %d decisions were produced", all, len(s.sent))
	}
}

// logs returns what docket logs shows of all shards, the oldest first, and what it says on standard error with it.
func (s *shardSystem) logs(args ...string) (ids []string, rest string) {
	s.t.Helper()
	out, code := s.command(nil, "docket", append([]string{"logs", "--oldest", "--lines", "-n", "100000"}, args...)...)
	if code != 0 {
		s.t.Fatalf("docket logs ended with %d:\n%s", code, out)
	}
	for line := range strings.Lines(out) {
		var d struct {
			ID    string `json:"decision_id"`
			Shard string `json:"shard"`
		}
		if json.Unmarshal([]byte(line), &d) != nil || d.Shard == "" {
			rest += line
			continue
		}
		ids = append(ids, d.ID)
	}
	return ids, rest
}

func (s *shardSystem) verified() {
	s.t.Helper()
	args := []string{"verify", "--since", "1h", "--settled"}
	for _, dir := range s.places.SpoolDirs {
		args = append(args, "--spool", dir)
	}
	out, code := s.command(nil, "consumer", args...)
	if code != 0 || strings.Count(out, "none 0\n") != 3 || strings.Contains(out, "broken") {
		s.t.Errorf("consumer verify ended with %d:\n%s", code, out)
	}
}

// Three servers have two partitions each. A consumer is killed and its group takes over. Everything is stored once, and
// docket shows all of it. Then a server stops: its partitions wait, the others continue, and answers say PARTIAL.
func TestShards_ThreeServers(t *testing.T) {
	t.Parallel()
	s := newShards(t)
	first, second := s.consumer("DOCKET_SHARD=a"), s.consumer("DOCKET_SHARD=a")
	b, c := s.consumer("DOCKET_SHARD=b"), s.consumer("DOCKET_SHARD=c")
	for _, p := range []*process{first, second} {
		eventually(t, patience, p.name+" has one partition of two", func() error {
			if code, body := p.get("/readyz"); code != 200 || !strings.Contains(body, `"assigned":1`) {
				return fmt.Errorf("/readyz: %d %s", code, body)
			}
			return nil
		})
	}
	s.produce(1500)
	eventually(t, patience, "the first consumer of shard a stores", func() error {
		if first.metric(`docket_records_total{home="row",shard="a"}`) == 0 {
			return fmt.Errorf("it has stored nothing")
		}
		return nil
	})
	first.kill()
	s.produce(1500)
	s.committed(0, 1, 2)
	s.once()
	s.verified()
	if ids, rest := s.logs(); !slices.Equal(ids, s.sent) || strings.Contains(rest, "PARTIAL") {
		t.Errorf("docket logs shows %d decisions of %d, and says %s", len(ids), len(s.sent), rest)
	}
	if out, code := s.command(nil, "docket", "stats", "--json", "--since", "1d"); code != 0 || counted(t, out) != len(s.sent) {
		t.Errorf("docket stats ended with %d and counted %d of %d", code, counted(t, out), len(s.sent))
	}
	if out, code := s.command(nil, "docket", "why", s.sent[777], "--json"); code != 0 || strings.Contains(out, "shards_not_asked") {
		t.Errorf("docket why ended with %d:\n%s", code, out)
	}
	if out, code := s.command(nil, "docket", "where-is", s.sent[778]); code != 0 || strings.Count(out, "stored") != 1 {
		t.Errorf("docket where-is ended with %d:\n%s", code, out)
	}
	s.whereByDesk()
	if out, code := s.command(nil, "docket", "dlq", "list"); code != 2 || !strings.Contains(out, "DOCKET_SHARD: is missing; name one of a, b, c") {
		t.Errorf("docket dlq list ended with %d:\n%s", code, out)
	}

	checked, _ := s.command(nil, "consumer", "check") // it warns about the one broker of the test
	for _, want := range []string{"ok    shard b, keys: the latest", "ok    shard b, database shard: shard b, partitions 2-3; the latest ", "ok    shard c, group " + s.places.Group + "-c: Stable, 1 member"} {
		if !strings.Contains(checked, want) {
			t.Errorf("consumer check does not say %q:\n%s", want, checked)
		}
	}

	before := len(s.sent)
	s.servers[1].Stop(t, testenv.Immediate)
	s.produce(1500)
	s.committed(0, 2)
	eventually(t, patience, "shard b holds", func() error {
		if code, body := b.get("/readyz"); code != 503 || b.metric(`docket_hold{reason="database_away",shard="b"}`) < 1 {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
	for _, p := range []*process{second, c} {
		if code, body := p.get("/readyz"); code != 200 {
			t.Errorf("%s: /readyz %d %s", p.name, code, body)
		}
	}
	missing := map[string]bool{}
	ids, rest := s.logs()
	if !strings.Contains(rest, "PARTIAL: shard b was not asked") {
		t.Errorf("docket logs does not say that shard b is missing: %s", rest)
	}
	for _, id := range s.sent {
		missing[id] = !slices.Contains(ids, id)
	}
	s.inB(missing)
	out, code := s.command(nil, "docket", "logs", "--json", "-n", "3")
	if code != 0 || !strings.Contains(out, `"freshness": "PARTIAL"`) || !strings.Contains(out, `"shards_not_asked":[{"shard":"b"`) {
		t.Errorf("docket logs --json ended with %d:\n%s", code, out)
	}
	if out, code := s.command(nil, "docket", "stats", "--json", "--since", "1d"); code != 0 || counted(t, out) >= len(s.sent) || !strings.Contains(out, `"freshness": "PARTIAL"`) {
		t.Errorf("docket stats ended with %d and counted %d:\n%s", code, counted(t, out), out)
	}
	if len(ids) <= before/2 || before == len(s.sent) {
		t.Errorf("only %d decisions are shown", len(ids))
	}

	s.servers[1].Start(t)
	s.committed(0, 1, 2)
	parked := s.replayer("DOCKET_SHARD=b") // a batch or three may have been parked
	eventually(t, patience, "the decisions of shard b have their rows", func() error {
		if ids, _ := s.logs(); len(ids) != len(s.sent) {
			return fmt.Errorf("%d of %d", len(ids), len(s.sent))
		}
		return nil
	})
	s.once()
	if ids, rest := s.logs(); !slices.Equal(ids, s.sent) || strings.Contains(rest, "PARTIAL") {
		t.Errorf("docket logs shows %d decisions of %d, and says %s", len(ids), len(s.sent), rest)
	}
	eventually(t, patience, "the replayer has committed", func() error {
		lags, err := kadm.NewClient(s.client).Lag(t.Context(), s.places.ParkingGroup+"-b")
		if err != nil {
			return err
		}
		if l := lags[s.places.ParkingGroup+"-b"]; l.Error() != nil || l.Lag.Total() > 0 {
			return fmt.Errorf("lag %d, %w", l.Lag.Total(), l.Error())
		}
		return nil
	})
	s.verified()
	for _, p := range []*process{second, b, c, parked} {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d", p.name, code)
		}
	}
}

// whereByDesk asks the desk of one shard where decisions of each shard are, and commands with the settings of that shard.
func (s *shardSystem) whereByDesk() {
	s.t.Helper()
	api := freeAddr(s.t)
	d := s.desk("DOCKET_SHARD=a", "DOCKET_DESK_API_ADDR="+api, "DOCKET_DESK_API_TOKENS=mara:viewer:0123456789abcdef")
	eventually(s.t, patience, "the desk is ready", func() error {
		if code, body := d.get("/readyz"); code != 200 {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
	for i, name := range shardNames {
		n := slices.IndexFunc(s.sent, func(id string) bool { return s.partition(id)/2 == i })
		stored := fmt.Sprintf("shard %s:\n%s/%d/", name, s.places.Topic, s.partition(s.sent[n]))
		for _, asks := range [][]string{{"DOCKET_SHARD=a"}, {"DOCKET_SHARDS=", "DOCKET_SHARD_URLS=", "DOCKET_SERVER=http://" + api, "DOCKET_TOKEN=0123456789abcdef"}} {
			eventually(s.t, patience, "docket where-is "+s.sent[n]+" by "+asks[0], func() error {
				out, code := s.command(asks, "docket", "where-is", s.sent[n])
				if code != 0 || !strings.Contains(out, stored) || strings.Count(out, "stored ") != 1 {
					return fmt.Errorf("it ended with %d:\n%s", code, out)
				}
				return nil
			})
		}
	}
	if code := d.stop(); code != 0 {
		s.t.Errorf("%s ended with %d", d.name, code)
	}
}

// partition is the partition of the source topic that an id is produced to.
func (s *shardSystem) partition(id string) int {
	return kgo.StickyKeyPartitioner(nil).ForTopic(s.places.Topic).Partition(&kgo.Record{Key: []byte(id)}, 6)
}

// inB checks that the decisions that are missing are those of shard b's partitions.
func (s *shardSystem) inB(missing map[string]bool) {
	s.t.Helper()
	for id, gone := range missing {
		p := s.partition(id)
		if ofB := p == 2 || p == 3; ofB != gone {
			s.t.Errorf("%s of partition %d is missing: %v", id, p, gone)
			return
		}
	}
}

// counted adds the counts of docket stats --json.
func counted(t *testing.T, out string) (n int) {
	t.Helper()
	var stats struct {
		Lines []struct{ Counts map[string]int }
	}
	if i := strings.Index(out, "{"); i < 0 || json.NewDecoder(strings.NewReader(out[i:])).Decode(&stats) != nil {
		t.Fatalf("docket stats printed %s", strconv.Quote(out))
	}
	for _, l := range stats.Lines {
		for _, c := range l.Counts {
			n += c
		}
	}
	return n
}
