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
			all[n].add(s, &answers[i][n])
		}
		all[n].near()
	}
	for _, n := range reads {
		read += n
	}
	return all, read
}

// add joins the answer of a shard.
func (a *Answer) add(s ShardLook, of *Answer) {
	shard, set := s.Name, s.Look.Settings
	// The spools of a host have records of several shards. Each is told by the shard whose topic it goes to.
	own := []string{set.KafkaParkingTopic, set.KafkaDLQTopic, set.KafkaParkingDLQTopic}
	found := slices.DeleteFunc(slices.Clone(of.Found), func(f Found) bool { return f.Where == Spooled && !slices.Contains(own, f.To) })
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
	a.Found = append(a.Found, found...)
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
