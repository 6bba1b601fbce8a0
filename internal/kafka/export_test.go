package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// Queued is what waits in the queue of an assignment.
func Queued(a *Assignment) (records int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue), a.bytes
}

// Poll pretends that a poll brought a record.
func Poll(a *Assignment, r *kgo.Record) {
	a.session.take(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: r.Topic, Partitions: []kgo.FetchPartition{
		{Partition: r.Partition, Records: []*kgo.Record{r}}}}}}})
}

// BetweenPollAndQueue calls f for every poll before its records are queued.
func BetweenPollAndQueue(s *Source, f func()) { s.polled = f }

// Member is the name under which the group knows the client of an assignment now.
func Member(a *Assignment) string {
	member, _ := a.session.client.GroupMetadata()
	return member
}

// Answered is what an answer of the client becomes.
var Answered = answered

// SpareMade is how many bytes of memory were made for what was inflated, as none that was used before would do.
func SpareMade(s *Source) int64 { return s.spare.bytes.made.Load() }

// Position is one past the last offset polled.
func Position(a *Assignment) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.position
}

// CommitMarks is what a session does each second.
func CommitMarks(a *Assignment) { a.commitMarks(a.session.polling) }

// Resetting completes the hint of a fault.
func Resetting(f *FaultError, brokers []string, group string) { f.resetting(brokers, group) }

// lone is a session without a client.
func lone(sc SourceConfig) *session {
	sc = sc.withDefaults(Config{})
	return &session{source: &Source{sc: sc, room: newRoom(sc)}, parts: map[int32]*Assignment{}}
}
