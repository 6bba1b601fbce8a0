package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// Queued returns the size of an assignment's queue.
func Queued(a *Assignment) (records int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue), a.bytes
}

// Poll queues a record as if it were polled.
func Poll(a *Assignment, r *kgo.Record) {
	a.session.take(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: r.Topic, Partitions: []kgo.FetchPartition{
		{Partition: r.Partition, Records: []*kgo.Record{r}}}}}}})
}

// BetweenPollAndQueue calls f after every poll, before its records are queued.
func BetweenPollAndQueue(s *Source, f func()) { s.polled = f }

// Member returns the present member id of an assignment's client.
func Member(a *Assignment) string {
	member, _ := a.session.client.GroupMetadata()
	return member
}

// Answered exports answered.
var Answered = answered

// SpareMade returns how many bytes were allocated for inflated sets because no used memory was large enough.
func SpareMade(s *Source) int64 { return s.spare.bytes.made.Load() }

// Position returns one past the last polled offset.
func Position(a *Assignment) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.position
}

// CommitMarks commits transaction markers, as a session does each second.
func CommitMarks(a *Assignment) { a.commitMarks(a.session.polling, true) }

// LoseAnswer makes it seem that the commit of an offset was sent and not answered.
func LoseAnswer(a *Assignment, offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried = offset
}

// Resetting exports resetting.
func Resetting(f *FaultError, brokers []string, group string) { f.resetting(brokers, group) }

// lone makes a session without a client.
func lone(sc SourceConfig) *session {
	sc = sc.withDefaults(Config{})
	return &session{source: &Source{sc: sc, room: newRoom(sc)}, parts: map[int32]*Assignment{}}
}

// Claim is what a member says that it has of a topic.
type Claim struct {
	Generation int32
	Owned      []int32
}

// Divide exports divide.
func Divide(partitions []int32, claims []Claim) map[int32]int {
	members := make([]candidate, len(claims))
	for i, c := range claims {
		members[i] = candidate{generation: c.Generation, owned: c.Owned}
	}
	return divide(partitions, members)
}

// PartitionerOf exports partitionerOf.
var PartitionerOf = partitionerOf
