package kafka_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// texts are notes.
type texts struct {
	mu   sync.Mutex
	text string
	met  []string
}

func (n *texts) Text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text
}

func (n *texts) Met(_ int64, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.met = append(n.met, text)
}

func (n *texts) set(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = text
}

func (n *texts) seen() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met
}

func noting(n *texts) kafka.SourceConfig {
	sc := small()
	sc.Notes = n
	return sc
}

// noted returns what the group has committed of the first partition.
func noted(t *testing.T, r *kafka.Reader) (offset int64, note string) {
	t.Helper()
	done, notes, err := r.CommittedNoted(t.Context(), group, topic)
	if err != nil {
		t.Fatal(err)
	}
	return done[0], notes[0]
}

// TestNote_BesideOffsets: a commit has the note of its time. A partition without new records has a new note soon. The next member
// meets it before it commits anything.
func TestNote_BesideOffsets(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	r := scanner(t, c)
	c.Values(t, topic, 0, "one", "two")
	var first, second book
	notes := &texts{text: "first"}
	m := run(t, fast(c), noting(notes), storing(first.note))
	is := func(offset int64, text string) func() bool {
		return func() bool {
			at, note := noted(t, r)
			return at == offset && note == text
		}
	}
	kafkatest.Eventually(t, "the records are committed with the note", is(2, "first"))
	notes.set("second")
	kafkatest.Eventually(t, "the note is new", is(2, "second"))
	notes.set("third")
	c.Values(t, topic, 0, "three")
	kafkatest.Eventually(t, "a record is committed with the note", is(3, "third"))
	m.end()

	next := &texts{text: "of another"}
	run(t, fast(c), noting(next), storing(second.note))
	kafkatest.Eventually(t, "the next member notes what is committed", is(3, "of another"))
	if met := next.seen(); len(met) == 0 || met[0] != "third" {
		t.Errorf("the next member met %q", met)
	}
	c.Values(t, topic, 0, "four")
	kafkatest.Eventually(t, "the next record is committed", is(4, "of another"))
	if n := second.len(); n != 1 {
		t.Errorf("the next member read %d records", n)
	}
}

// TestNote_TooLong: a broker that takes no note takes the offset.
func TestNote_TooLong(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	c.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := r.(*kmsg.OffsetCommitRequest)
		if m := req.Topics[0].Partitions[0].Metadata; m == nil || *m == "" {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewOffsetCommitResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetCommitResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.OffsetMetadataTooLarge.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	r := scanner(t, c)
	c.Values(t, topic, 0, "one")
	c.Values(t, topic, 1, "one")
	var got book
	m := run(t, fast(c), noting(&texts{text: "a note"}), storing(got.note))
	kafkatest.Eventually(t, "the records are committed", func() bool {
		done, notes, err := r.CommittedNoted(t.Context(), group, topic)
		return err == nil && done[0] == 1 && done[1] == 1 && notes[0] == "" && notes[1] == ""
	})
	if err := m.Fault(); err != nil {
		t.Error(err)
	}
}

// TestNote_OffsetNeverGoesBack: while it is not known whether a later offset is committed, no note is worth an earlier one.
func TestNote_OffsetNeverGoesBack(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	r := scanner(t, c)
	c.Values(t, topic, 0, "one", "two")
	notes := &texts{text: "first"}
	at, goOn := make(chan *kafka.Assignment), make(chan struct{})
	run(t, fast(c), noting(notes), func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		if err := a.Commit(ctx, settle(b)); err != nil {
			return err
		}
		kafka.LoseAnswer(a, 9)
		at <- a
		<-goOn
		kafka.LoseAnswer(a, -1)
		<-a.Leaving().Done()
		return nil
	})
	a := <-at
	notes.set("second")
	kafka.CommitMarks(a)
	if offset, note := noted(t, r); offset != 2 || note != "first" {
		t.Errorf("%d was committed with %q", offset, note)
	}
	close(goOn)
	kafkatest.Eventually(t, "the note is new", func() bool { offset, note := noted(t, r); return offset == 2 && note == "second" })
}

// slow is a note whose text is asked for slowly, once.
type slow struct {
	texts
	armed    bool
	in, goOn chan struct{}
}

func (n *slow) Text() string {
	text := n.texts.Text()
	n.mu.Lock()
	armed := n.armed
	n.armed = false
	n.mu.Unlock()
	if armed {
		n.in <- struct{}{}
		<-n.goOn
	}
	return text
}

// TestNote_IsNeverOlderThanItsOffset: a note that is renewed does not replace the one of a commit that came meanwhile.
func TestNote_IsNeverOlderThanItsOffset(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	r := scanner(t, c)
	c.Values(t, topic, 0, "one", "two")
	notes := &slow{texts: texts{text: "first"}, in: make(chan struct{}), goOn: make(chan struct{})}
	sc := small()
	sc.Notes = notes
	at := make(chan *kafka.Assignment, 1)
	run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		at <- a
		for {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			if b.Records()[0].Offset >= 2 {
				notes.set("the spool holds") // it has the record
			}
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	})
	a := <-at
	kafkatest.Eventually(t, "two records are committed", func() bool { offset, _ := noted(t, r); return offset == 2 })
	notes.mu.Lock()
	notes.text, notes.armed = "the spool is empty", true
	notes.mu.Unlock()
	<-notes.in // the note is to be renewed
	c.Values(t, topic, 0, "three")
	kafkatest.Eventually(t, "the third record is read", func() bool { return kafka.Position(a) == 3 })
	watched := func() (committed bool) {
		offset, note := noted(t, r)
		if offset == 3 && note != "the spool holds" {
			t.Fatalf("offset 3, whose record is in the spool, is committed with %q", note)
		}
		return offset == 3
	}
	// It would be committed at once if it did not wait for the other commit, and its note would be replaced then.
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end) && !watched(); {
		time.Sleep(5 * time.Millisecond)
	}
	close(notes.goOn)
	kafkatest.Eventually(t, "the third record is committed", watched)
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		watched()
	}
}
