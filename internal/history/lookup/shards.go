package lookup

import (
	"context"
	"slices"
	"sync"
)

// ShardLook is the lookup in one shard.
type ShardLook struct {
	Name string
	Look *Look
}

// allShards looks in every shard at the same time. The names of places say the shard.
func (l *Look) allShards(ctx context.Context, ids []string) (all []Answer, read int64) {
	answers, reads := make([][]Answer, len(l.Shards)), make([]int64, len(l.Shards))
	var looking sync.WaitGroup
	for i, s := range l.Shards {
		one := *s.Look
		one.Limits = l.Limits
		looking.Go(func() { answers[i], reads[i] = one.all(ctx, ids) })
	}
	looking.Wait()
	all = make([]Answer, len(ids))
	for n, id := range ids {
		all[n] = Answer{ID: id, At: answers[0][n].At, Whole: true}
		for i, s := range l.Shards {
			of := &answers[i][n]
			of.Found = slices.DeleteFunc(of.Found, func(f Found) bool { return f.Where == Spooled && l.tellerOf(f.To) != i })
			all[n].add(s, of)
		}
		all[n].near()
	}
	for _, n := range reads {
		read += n
	}
	return all, read
}

// tellerOf returns the shard that tells of spooled records for a topic. The spools of a host have records of several shards, and
// each shard reads them. It is the shard that has the topic, and the first one if none has it: its shard may be gone.
func (l *Look) tellerOf(topic string) int {
	return max(slices.IndexFunc(l.Shards, func(s ShardLook) bool {
		set := s.Look.Settings
		return slices.Contains([]string{set.KafkaParkingTopic, set.KafkaDLQTopic, set.KafkaParkingDLQTopic}, topic)
	}), 0)
}

// add joins the answer of a shard.
func (a *Answer) add(s ShardLook, of *Answer) {
	shard := s.Name
	for _, d := range of.Rows {
		d.Shard = shard
		a.Rows = append(a.Rows, d)
	}
	for _, d := range of.Archived {
		d.Shard = shard
		a.Archived = append(a.Archived, d)
	}
	a.Letters, a.MoreLetters = append(a.Letters, of.Letters...), a.MoreLetters+of.MoreLetters
	a.shorten()
	a.Found = append(a.Found, of.Found...)
	if a.More = a.More || of.More || len(a.Found) > mostFound; len(a.Found) > mostFound {
		a.Found = a.Found[:mostFound]
	}
	for _, p := range of.Looked {
		a.Looked = append(a.Looked, Searched{inShard(shard, p.Name), p.Note})
	}
	for _, g := range of.NotLooked {
		g.Name = inShard(shard, g.Name)
		a.NotLooked = append(a.NotLooked, g)
	}
}

func inShard(shard, name string) string { return "shard " + shard + ", " + name }
