package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	threeShards = "DOCKET_SHARDS=a=0-3,b=4-7,c=8-11"
	threeURLs   = "DOCKET_SHARD_URLS=a=postgres://u:pa@a/x b=postgres://u:pb@b/x\nc=postgres://u:pc@c/x"
)

func TestShards_NoneChangesNothing(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Consumer, []string{database})
	if err != nil {
		t.Fatal(err)
	}
	if s.Share() != nil || s.OfAllShards() || len(s.ByShard()) != 1 || len(s.EveryShard()) != 1 || s.KafkaGroup != "docket" || s.KafkaParkingTopic != "decision-logs-parking" {
		t.Errorf("without shards: %v, %s, %s", s.Share(), s.KafkaGroup, s.KafkaParkingTopic)
	}
}

// Only the source topics are shared. A shard that shared a home or a group with another could commit for it.
func TestShards_WholeDocketEach(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Desk, []string{threeShards, "DOCKET_SHARD=b", "DOCKET_DATABASE_URL=postgres://u:p@b/x", "DOCKET_LANES=urgent,bulk", "DOCKET_BULK_GROUP=slow", "DOCKET_ARCHIVE_TO=s3://bucket/x/"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{s.KafkaTopic, s.KafkaGroup, s.ParkingGroup, s.DeskGroup, s.KafkaDLQTopic, s.KafkaParkingTopic, s.KafkaParkingDLQTopic, s.ArchiveTo}
	want := []string{"decision-logs", "docket-b", "docket-parking-b", "docket-desk-b", "decision-logs-dlq-b", "decision-logs-parking-b", "decision-logs-parking-dlq-b", "s3://bucket/x/b"}
	if !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	for _, l := range s.Lanes()[1:] {
		if want := map[string]string{"urgent": "docket-b-urgent", "bulk": "slow-b"}[l.Name()]; l.Group != want || l.Topic != "decision-logs-"+l.Name() {
			t.Errorf("lane %s: %s in %s", l.Name(), l.Group, l.Topic)
		}
	}
	if share := s.Share(); share.Has(3) || !share.Has(4) || share.Shard.Name != "b" || s.DatabaseURL.Reveal() != "postgres://u:p@b/x" {
		t.Errorf("share %+v", share)
	}
}

func TestShards_AllAtOnce(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{{threeShards, threeURLs}, {threeShards, threeURLs, "DOCKET_SHARD=b"}} {
		s, _, err := Load(Desk, environ)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range s.EveryShard() {
			got = append(got, one.ShardName+" "+one.KafkaGroup+" "+one.DatabaseURL.Reveal())
		}
		want := []string{"a docket-a postgres://u:pa@a/x", "b docket-b postgres://u:pb@b/x", "c docket-c postgres://u:pc@c/x"}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", environ, got, want)
		}
		if s.OfAllShards() != (s.ShardName == "") || len(s.ByShard()) != map[string]int{"": 3, "b": 1}[s.ShardName] {
			t.Errorf("%v: of all shards %v, %d by shard", environ, s.OfAllShards(), len(s.ByShard()))
		}
	}
}

func TestShards_Complaints(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		program Program
		environ []string
		want    []string // variable and a part of the text, in order
	}{
		"ranges": {Consumer, []string{database, "DOCKET_SHARDS=a=0-3,b=3-5,c=9,d", "DOCKET_SHARD=a"},
			[]string{"DOCKET_SHARDS: entry \"d\"", "DOCKET_SHARDS: a=0-3 and b=3-5 overlap"}},
		"unknown shard":     {Consumer, []string{database, threeShards, "DOCKET_SHARD=x"}, []string{`DOCKET_SHARD: "x" is not a shard; allowed: a, b, c`}},
		"no shard":          {Consumer, []string{database, threeShards}, []string{"DOCKET_SHARD: is missing"}},
		"no shards":         {Consumer, []string{database, "DOCKET_SHARD=a"}, []string{"DOCKET_SHARD: is set without DOCKET_SHARDS"}},
		"two databases":     {Replayer, []string{database, threeShards, threeURLs, "DOCKET_SHARD=a"}, []string{"DOCKET_DATABASE_URL: is set together with DOCKET_SHARD_URLS"}},
		"no database":       {Consumer, []string{threeShards, "DOCKET_SHARD=a"}, []string{"DOCKET_DATABASE_URL: is required"}},
		"one URL is absent": {Desk, []string{threeShards, "DOCKET_SHARD_URLS=a=postgres://a/x b=postgres://b/x"}, []string{"DOCKET_SHARD_URLS: has no entry for shard c"}},
		"one URL for two": {Desk, []string{threeShards, "DOCKET_SHARD_URLS=a=postgres://a/x b=postgres://a/x c=postgres://c/x z=postgres://z/x"},
			[]string{"DOCKET_SHARD_URLS: has an entry for a shard that DOCKET_SHARDS does not name", "DOCKET_SHARD_URLS: has the same URL for a and b"}},
		"no name of a URL": {Desk, []string{threeShards, threeURLs + " postgres://d/x?a=b a=postgres://e/x"}, []string{"DOCKET_SHARD_URLS: entry 4 is not NAME=URL", "DOCKET_SHARD_URLS: entry 5 has the name of an entry before"}},
		"collector": {Collector, []string{threeShards, "DOCKET_COLLECTOR_TOKENS=a:0123456789abcdef"},
			[]string{"DOCKET_SHARD: is missing", "DOCKET_COLLECTOR_KEY: \"requested_by\" does not keep a decision in one shard"}},
		"all at once": {Desk, []string{"DOCKET_SHARDS=a=0-3,b", "DOCKET_SHARD=b", "DOCKET_SHARD_URLS=b=postgres://b/x z"},
			[]string{"DOCKET_SHARDS: entry \"b\"", "DOCKET_SHARD_URLS: entry 2 is not NAME=URL", "DOCKET_SHARD_URLS: has no entry for shard a"}},
		"a home of another shard": {Consumer, []string{database, "DOCKET_SHARDS=a=0-3,dlq-a=4-7", "DOCKET_SHARD=a"},
			[]string{`DOCKET_SHARDS: "decision-logs-parking-dlq-a" would be the parking dead-letter topic of shard a and the parking topic of shard dlq-a`}},
		"that without a shard": {Collector, []string{"DOCKET_SHARDS=a=0-3,b=4-7", "DOCKET_SHARD=b", "DOCKET_COLLECTOR_KEY=decision_id", "DOCKET_LANES=bulk", "DOCKET_KAFKA_BULK_TOPIC=decision-logs-dlq-a"},
			[]string{`DOCKET_SHARDS: the dead-letter topic of shard a would be "decision-logs-dlq-a", which is a source topic`}},
		"a group of another shard": {Replayer, []string{database, "DOCKET_SHARDS=parking-a=0-3,a-urgent=4-7,a=8", "DOCKET_SHARD=a", "DOCKET_LANES=urgent"},
			[]string{`DOCKET_SHARDS: "docket-parking-a-urgent" would be the group of the urgent lane of shard parking-a and the group of the replayer of shard a-urgent`,
				`DOCKET_SHARDS: "docket-a-urgent" would be the group of the default lane of shard a-urgent and the group of the urgent lane of shard a`,
				`DOCKET_SHARDS: "docket-parking-a" would be the group of the default lane of shard parking-a and the group of the replayer of shard a`}},
		"a group of a desk": {Desk, []string{threeURLs, "DOCKET_SHARDS=a=0-3,desk-a=4-7", "DOCKET_SHARD_URLS=a=postgres://a/x desk-a=postgres://b/x"},
			[]string{`DOCKET_SHARDS: "docket-desk-a" would be the group of the desk of shard a and the group of the default lane of shard desk-a`}},
		"a home of another": {Consumer, []string{database, threeShards, "DOCKET_SHARD=a", "DOCKET_KAFKA_TOPIC=x-a", "DOCKET_KAFKA_DLQ_TOPIC=x"}, []string{`DOCKET_KAFKA_DLQ_TOPIC: "x-a" is already the topic of DOCKET_KAFKA_TOPIC`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(of.program, of.environ)
			var all Complaints
			if !errors.As(err, &all) || len(all) != len(of.want) {
				t.Fatalf("complaints %v, want %q", err, of.want)
			}
			for i, want := range of.want {
				if !strings.HasPrefix(all[i].Error(), want) {
					t.Errorf("complaint %q, want %q", all[i], want)
				}
				if strings.Contains(all[i].Error(), "postgres://u") || strings.Contains(all[i].Error(), "pa@") {
					t.Errorf("a complaint has a URL: %v", all[i])
				}
			}
		})
	}
}

func TestShards_URLsAreJudgedInWords(t *testing.T) {
	t.Parallel()
	_, _, err := LoadWith(Desk, []string{threeShards, threeURLs}, Judges{databaseVariable: func(string) string { return "it is not a URL" }})
	for _, of := range []string{"a", "b", "c"} {
		if want := "DOCKET_SHARD_URLS: the URL of shard " + of + " cannot be used: it is not a URL"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestShards_CollectorWritesToAll(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Collector, []string{threeShards, "DOCKET_SHARD=a", "DOCKET_COLLECTOR_KEY=decision_id", "DOCKET_COLLECTOR_TOKENS=a:0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Share() != nil || s.KafkaDLQTopic != "decision-logs-dlq-a" {
		t.Errorf("share %v, dead letters to %s", s.Share(), s.KafkaDLQTopic)
	}
}

// A new password needs no restart, as with one database.
func TestShardURLs_FileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "urls")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const form = "a=postgres://u:%[1]s@a/x\nb=postgres://u:%[1]s@b/x\nc=postgres://u:%[1]s@c/x\n"
	write(fmt.Sprintf(form, "first"))
	s, _, err := Load(Consumer, []string{threeShards, "DOCKET_SHARD=b", "DOCKET_SHARD_URLS_FILE=" + path})
	if err != nil {
		t.Fatal(err)
	}
	write(fmt.Sprintf(form, "second"))
	if got, err := s.FreshDatabaseURL(); err != nil || got.Reveal() != "postgres://u:second@b/x" {
		t.Errorf("after the file changed: %q, %v", got.Reveal(), err)
	}
	write("a=postgres://u:third@a/x\n")
	if got, err := s.FreshDatabaseURL(); err == nil || got.Reveal() != "postgres://u:first@b/x" || strings.Contains(err.Error(), "third") {
		t.Errorf("without an entry: %q, %v", got.Reveal(), err)
	}
}
