//go:build synctests

package sim

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
)

// clerk records the state of the whole world at every offset commit, while the broker handles it and before it takes
// effect. Topics only grow and rows are numbered, so for these it records only how far they are.
type clerk struct {
	w       *world
	commits []commit
	spools  map[*slot]spoolView
}

// commit is the world at the moment of a commit.
type commit struct {
	at            time.Duration
	asked         string // describes the commit
	group, member string
	offsets       map[int32]int64            // requested offsets
	sources       map[string]map[int32]int64 // committed by the consumers, this commit included, by topic
	parked        map[int32]int64            // by the replayers
	before        map[string]map[int32]int64 // committed before this commit, by group
	ends          map[string]map[int32]int64 // of the topics
	stored        int64                      // number of the last transaction that stored rows
	alone         map[verify.Identity]bool   // rows that the standby does not have
	spool         []conservation.Place       // by the records; the ledger may not know them yet
}

// spoolView is what is durable on a disk.
type spoolView struct {
	changes int
	fs      any
	places  []conservation.Place
}

func newClerk(w *world) *clerk {
	c := &clerk{w: w, spools: map[*slot]spoolView{}}
	w.kafka.Watch(kmsg.OffsetCommit, func(r kmsg.Request) { c.witness(r.(*kmsg.OffsetCommitRequest)) })
	return c
}

// committed returns the committed offsets of a group in its topic.
func committed(c *kfake.Cluster, group, topic string) map[int32]int64 {
	all := map[int32]int64{}
	if info := c.GroupInfo(group); info != nil {
		for p, at := range info.Commits[topic] {
			all[p] = at.Offset
		}
	}
	return all
}

func ends(c *kfake.Cluster, topic string) map[int32]int64 {
	all := map[int32]int64{}
	for _, p := range c.PartitionInfos(topic) {
		all[p.Partition] = p.HighWatermark
	}
	return all
}

func (c *clerk) witness(r *kmsg.OffsetCommitRequest) {
	k := c.w.kafka.Cluster
	if r.Group == desks {
		c.witnessDesk(r)
		return
	}
	now := commit{
		at: c.w.history.since(), group: r.Group, member: r.MemberID, offsets: map[int32]int64{}, sources: c.w.committedIn(), parked: committed(k, replayers, parked),
		before: map[string]map[int32]int64{}, ends: map[string]map[int32]int64{}, stored: c.w.db.Commits(), alone: map[verify.Identity]bool{},
	}
	for _, r := range c.w.db.Unconfirmed() {
		now.alone[identity(r.DecisionID, r.Time)] = true
	}
	for _, topic := range append(c.w.sources(), parked, dead, exhausted) {
		now.ends[topic] = ends(k, topic)
	}
	now.before[replayers] = maps.Clone(now.parked)
	for _, l := range c.w.lanes {
		now.before[l.group] = maps.Clone(now.sources[l.topic])
	}
	target := now.sources[c.w.topicOf(r.Group)]
	if r.Group == replayers {
		target = now.parked
	}
	var asked strings.Builder
	asked.WriteString(r.Group)
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			fmt.Fprintf(&asked, " %d:%d", p.Partition, p.Offset)
			now.offsets[p.Partition] = p.Offset
			target[p.Partition] = max(target[p.Partition], p.Offset)
		}
	}
	now.asked = asked.String()
	for _, s := range c.w.slots {
		now.spool = append(now.spool, c.spooled(s)...)
	}
	c.w.history.add("commits", "", now.asked)
	c.commits = append(c.commits, now)
}

// spooled returns the places of the records in a slot's spool that would survive a power cut.
func (c *clerk) spooled(s *slot) []conservation.Place {
	fs := s.fs()
	changes := fs.Changes()
	if seen := c.spools[s]; seen.fs == any(fs) && seen.changes == changes {
		return seen.places
	}
	seen := spoolView{changes: changes, fs: fs}
	for _, f := range durable(s) {
		seen.places = append(seen.places, f.Place)
	}
	c.spools[s] = seen
	return seen.places
}

// durable returns the records in a slot's spool that would survive a power cut. An unreadable file has none.
func durable(s *slot) (all []conservation.Forwarded) {
	for name, content := range s.fs().Durable(".") {
		if !strings.HasSuffix(name, ".jsonl.gz") {
			continue
		}
		if found, err := verify.ReadSpoolFile(bytes.NewReader(content), name); err == nil {
			all = append(all, found...)
		}
	}
	return all
}
