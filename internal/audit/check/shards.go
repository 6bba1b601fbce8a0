package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/history/reader"
	"docket/internal/kafka"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// owned checks whether every partition of a source topic has a shard. It checks whether a lane has the partitions of the
// default lane: a decision that comes in both has to come to one shard.
func owned(s config.Settings, t kafka.Topic, src sources, r *report) {
	all := s.Shards()
	if len(all) == 0 || !isSource(s, t) {
		return
	}
	if none := all.Unowned(t.Partitions); len(none) > 0 {
		r.add(Fail, fmt.Sprintf("%d of %d partitions, from %d on, belong to no shard: nobody reads them", len(none), t.Partitions, none[0]),
			"give them to a shard in DOCKET_SHARDS of all programs, and restart all")
	}
	for _, one := range all {
		if last := one.Ranges[len(one.Ranges)-1].Last; int(last) >= t.Partitions {
			r.add(Warn, fmt.Sprintf("it has %d partitions, and shard %s has partitions up to %d", t.Partitions, one.Name, last),
				"correct DOCKET_SHARDS, or add partitions before anything is produced: more partitions give keys other partitions")
		}
	}
	if src.partitions > 0 && t.Partitions != src.partitions {
		r.add(Fail, fmt.Sprintf("%d partitions, and %s has %d: a decision that comes in both lanes can be stored in two shards", t.Partitions, s.KafkaTopic, src.partitions),
			"give the topics of all lanes the same number of partitions")
	}
}

// former is [Former] with a reader of its own.
func former(ctx context.Context, s config.Settings) []Result {
	if len(s.Shards()) == 0 {
		return nil
	}
	topics, err := newReader(s)
	if err != nil {
		return nil // the brokers' check has it
	}
	defer topics.Close()
	return Former(ctx, s, topics)
}

func newReader(s config.Settings) (*kafka.Reader, error) {
	cfg, err := app.Kafka(s, "check")
	if err != nil {
		return nil, err
	}
	return kafka.NewReader(cfg)
}

// Former checks whether records are unread in the homes of before the shards. Under these names no replayer of a shard reads
// parked records, and no desk dead letters.
func Former(ctx context.Context, s config.Settings, topics *kafka.Reader) (all []Result) {
	was, sharded := s.BeforeShards()
	if !sharded {
		return nil
	}
	const hint = "see docs/scaling.md, Records of before the shards"
	for _, one := range []struct{ topic, group string }{
		{was.KafkaDLQTopic, was.DeskGroup}, {was.KafkaParkingDLQTopic, was.DeskGroup}, {was.KafkaParkingTopic, was.ParkingGroup},
	} {
		if one.group == "" { // nobody says which desk
			continue
		}
		r := report{what: "former topic " + one.topic}
		u, err := topics.Behind(ctx, one.topic, one.group)
		var read map[int32]int64
		if err == nil && u.Records > 0 {
			read, err = topics.Committed(ctx, one.group, one.topic)
		}
		var f *kafka.FaultError
		switch {
		case errors.As(err, &f) && f.Reason == kafka.ReasonTopicMissing:
		case err != nil:
			r.add(Warn, "it cannot be read, so it is not known whether records of before the shards are unread: "+err.Error(), hint)
		case u.Records == 0:
		case len(read) == 0:
			r.add(Warn, fmt.Sprintf("it has %s and no commit of the group %s: these may be unread, and nobody reads them with shards", records(u.Records, ""), one.group), hint)
		default:
			r.add(Fail, fmt.Sprintf("%s unread by the group %s, and nobody reads them with shards", records(u.Records, " is"), one.group), hint)
		}
		all = append(all, r.all...)
	}
	return all
}

func records(n int64, is string) string {
	if n == 1 {
		return "1 record" + is
	}
	return fmt.Sprintf("%d records%s", n, strings.Replace(is, "is", "are", 1))
}

// looked is how many of the latest records of a topic are looked at, and how many of the latest rows.
const (
	lookedRecords = 1000
	lookedRows    = 1000
)

// keys checks whether producers key by decision_id. A decision is stored once in each shard, so all of its deliveries
// have to come to the same partition.
func keys(ctx context.Context, s config.Settings) []Result {
	if s.Share() == nil {
		return nil
	}
	r := report{what: "keys"}
	topics, err := newReader(s)
	if err != nil {
		return nil // the brokers' check has it
	}
	defer topics.Close()
	const once = "stored once holds in each shard, so producers must key records by decision_id, one decision a record"
	looked, others := 0, 0
	for _, name := range s.SourceTopics() {
		n, other, err := keyed(ctx, s, topics, name)
		if err != nil {
			r.add(Warn, "the latest records of "+name+" could not be read, so their keys were not checked: "+once, "see the checks of the brokers and topics")
			return r.results("")
		}
		looked, others = looked+n, others+other
	}
	if others > 0 {
		r.add(Warn, fmt.Sprintf("%d of the latest %d records have another key than their decision_id: a decision that is produced twice can be stored in two shards", others, looked), once)
	}
	return r.results(fmt.Sprintf("the latest %d records have their decision_id as key; ", looked) + once)
}

// keyed reads the latest records of a topic in the partitions of the shard. It returns how many there are, and how many
// of them are not keyed by the id of their only decision.
func keyed(ctx context.Context, s config.Settings, topics *kafka.Reader, name string) (looked, others int, err error) {
	to, err := topics.Ends(ctx, name)
	if err != nil || len(to) == 0 {
		return 0, 0, err
	}
	from, each := map[int32]int64{}, int64(max(lookedRecords/len(to), 1))
	for _, p := range slices.Sorted(maps.Keys(to)) {
		from[p] = max(to[p]-each, 0)
	}
	_, err = topics.Scan(ctx, name, from, to, func(r *kgo.Record) error {
		looked++
		decisions := verify.DecisionsOf(r, int64(s.MaxRecordBytes))
		if len(decisions) != 1 || decisions[0].Code == "" && decisions[0].ID != string(r.Key) {
			others++
		}
		return nil
	})
	return looked, others, err
}

// foreign checks whether the latest rows come from partitions of the shard.
func foreign(ctx context.Context, s config.Settings, db *store.Store) []Result {
	share := s.Share()
	if share == nil {
		return nil
	}
	r := report{what: "database shard"}
	found, err := historydb.NewReader(db.DB).Search(ctx, reader.Filter{}, reader.Page{Limit: lookedRows})
	if err != nil {
		return nil // the checks of the table have it
	}
	others := map[string]int{}
	for _, d := range found.Decisions {
		if _, source := s.Source(d.Topic); source && !share.Has(d.Partition) {
			others[fmt.Sprintf("%s/%d", d.Topic, d.Partition)]++
		}
	}
	if len(others) > 0 {
		r.add(Warn, fmt.Sprintf("of the latest %d rows some come from partitions of other shards: %s", len(found.Decisions), strings.Join(slices.Sorted(maps.Keys(others)), ", ")),
			"two shards may write to the same database, or ranges were moved; each shard needs its own database")
	}
	return r.results(fmt.Sprintf("shard %s, partitions %s; the latest %d rows come from these", s.ShardName, share.Shard.Ranges, len(found.Decisions)))
}
