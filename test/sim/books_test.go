//go:build synctests

package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// witnessDesk checks at a commit of the desk that the ledger has all records before the offset.
func (c *clerk) witnessDesk(r *kmsg.OffsetCommitRequest) {
	for _, t := range r.Topics {
		topic := t.Topic
		for _, name := range []string{dead, exhausted} {
			if topic == "" && c.w.kafka.TopicInfo(name).TopicID == t.TopicID { // newer requests have only the id
				topic = name
			}
		}
		before := committed(c.w.kafka.Cluster, desks, topic)
		for _, p := range t.Partitions {
			offset := max(before[p.Partition], 0)
			for offset < p.Offset && c.w.book.Has(topic, p.Partition, offset) {
				offset++
			}
			if offset < p.Offset {
				c.w.found(fmt.Sprintf("I16 ledger: %s commits %s/%d up to %d, and the ledger has not %d", r.MemberID, topic, p.Partition, p.Offset, offset))
			}
		}
	}
}

// adopt adds records that the desk put back on the source to the truth. Each must be a dead letter's, byte for byte,
// with a mark of the ledger. Its expected result is that of the original decision, or of the edited one.
func (w *world) adopt() {
	proof := w.proof()
	letters, sendings := map[string]*ledger.Entry{}, map[string]*ledger.Sending{}
	for i := range proof.Letters {
		letters[proof.Letters[i].ID] = &proof.Letters[i]
	}
	for i := range proof.Sendings {
		sendings[proof.Sendings[i].Mark] = &proof.Sendings[i]
	}
	sent := func(r *kgo.Record) int64 {
		if s := sendings[header(r, envelope.RetryOf)]; s != nil {
			return s.ID
		}
		return 0
	}
	w.returned, w.putBack = map[string][]verify.Place{}, nil
	// A dead letter that was sent again bare does not say when it failed. The ledger has the time of its record, and it may have been in
	// a spool for long.
	bare := map[int64]bool{}
	for _, r := range w.kafka.ReadAll(w.t, dead, exhausted) {
		if header(r, envelope.FailedAt) == "" {
			bare[r.Timestamp.UnixMilli()] = true
		}
	}
	keys := w.deskSettings().HeaderKeys()
	back := slices.DeleteFunc(w.kafka.ReadAll(w.t, w.sources()...), func(r *kgo.Record) bool {
		_, ours := w.ledger.At(r.Topic, r.Partition, r.Offset)
		return ours
	})
	// A retry can end as a dead letter that is retried, in a partition that was added later. Sort by the time of
	// sending.
	slices.SortStableFunc(back, func(a, b *kgo.Record) int { return cmp.Compare(sent(a), sent(b)) })
	for _, r := range back {
		mark := header(r, envelope.RetryOf)
		s := sendings[mark]
		if s == nil {
			w.found(fmt.Sprintf("I4 no invention: %s/%d/%d was put back under a mark that nobody gave out: %q", r.Topic, r.Partition, r.Offset, mark))
			continue
		}
		l := letters[s.LetterID]
		proven := keys.Prove(r)
		r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == envelope.Mac })
		value, worth := w.retried(s, l, proof.Lines)
		if worth == nil || !bytes.Equal(r.Value, value) || (r.Value == nil) != (value == nil) || !bytes.Equal(r.Key, l.Key) || !sameHeaders(r.Headers, l.Headers) || !proven {
			w.found(fmt.Sprintf("I3 fidelity: %s/%d/%d was put back as another record than the dead letter %.12s is", r.Topic, r.Partition, r.Offset, l.ID))
			continue
		}
		w.ledger.Acknowledged(r.Topic, r.Partition, r.Offset, conservation.Record{
			Key: r.Key, Value: r.Value, Headers: r.Headers, Decisions: worth, Planted: "put back", Reached: w.reached(s, l, proof.Lines),
		})
		since := l.FirstFailedAt
		if bare[since.UnixMilli()] {
			since = time.Time{}
		}
		w.putBack = append(w.putBack, putBack{verify.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, l.ID, since, l.Found})
		w.returned[mark] = append(w.returned[mark], verify.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset})
	}
}

// reached returns when the decision of a letter came to Kafka first. Its record is put back later. An edited one comes
// to Kafka only then; that is the zero time. Of a closed letter nothing is to be stored, so one that is reopened comes then.
func (w *world) reached(s *ledger.Sending, l *ledger.Entry, lines []ledger.Audit) time.Time {
	if w.sentAs(s) != nil {
		return time.Time{}
	}
	was, _ := w.ledger.At(l.Origin.Topic, l.Origin.Partition, l.Origin.Offset)
	came := was.Reached
	for i := range lines {
		if a := &lines[i]; a.LetterID == l.ID && a.Act == ledger.Reopened && !came.IsZero() && a.At.After(came) && !a.At.After(s.CreatedAt) {
			came = a.At
		}
	}
	return came
}

// retried returns the value that a retry of a letter must put back, and the expected results. These are nil if the
// letter was never produced.
func (w *world) retried(s *ledger.Sending, l *ledger.Entry, lines []ledger.Audit) ([]byte, []conservation.Decision) {
	if e := w.sentAs(s); e != nil {
		return e.value, e.worth
	}
	at, _ := w.ledger.Canonical(placeOf(l.Origin))
	was, known := w.ledger.At(at.Topic, at.Partition, at.Offset)
	if !known {
		return nil, nil
	}
	value := came(l, lines)
	if l.Refused > 0 {
		held, ok := heldBy(l, value, &was)
		if !ok {
			return value, nil
		}
		return value, held
	}
	return value, was.Decisions[at.Index : at.Index+1]
}

// sameHeaders reports whether a record that was put back has the headers of its dead letter, and its mark.
func sameHeaders(got []kgo.RecordHeader, want []ledger.Header) bool {
	if len(got) != len(want)+1 {
		return false
	}
	for i, h := range want {
		if got[i].Key != h.Key || !bytes.Equal(got[i].Value, h.Value) {
			return false
		}
	}
	return got[len(want)].Key == envelope.RetryOf
}

// lookIntoBooks returns the ledger as the checker reads it; nil without a desk.
func (w *world) lookIntoBooks(ev *evidence) *verify.Books {
	if w.plan.Desks == 0 {
		return nil
	}
	b := &verify.Books{Proof: w.proof(), Read: map[string]map[int32]int64{}}
	var err error
	if b.Ranges, err = w.book.Surplus(context.Background(), true, 0, 1000); err != nil {
		panic(err) // it cannot fail
	}
	for _, topic := range []string{dead, exhausted} {
		b.Read[topic] = committed(w.kafka.Cluster, desks, topic)
	}
	for i := range ev.Forwarded {
		f := &ev.Forwarded[i]
		if !b.Entered(f) {
			continue
		}
		known, err := w.book.Knows(context.Background(), []ledger.Trace{f.Trace()})
		b.Looked(f, err == nil && known[0])
	}
	return b
}

// judgeDesk checks that every retry had exactly the effect that the ledger says.
func (w *world) judgeDesk(ev *evidence) {
	if ev.Books == nil {
		return
	}
	letters := map[string]*ledger.Entry{}
	for i := range ev.Books.Letters {
		letters[ev.Books.Letters[i].ID] = &ev.Books.Letters[i]
	}
	accepted := map[string]int{}
	for i := range ev.Books.Sendings {
		s := &ev.Books.Sendings[i]
		if s.By == "operator" || s.By == editor {
			accepted[s.By]++
		}
		if wrong := w.effect(ev, s, letters[s.LetterID]); wrong != "" {
			at, _ := w.ledger.Canonical(placeOf(letters[s.LetterID].Origin))
			w.found(fmt.Sprintf("a retry has one effect: retry %d of %.12s, %v, put back at %v: %s\n%s", s.ID, s.LetterID, at, w.returned[s.Mark], wrong, w.story(ev, at)))
		}
	}
	for _, by := range []string{"operator", editor} {
		if accepted[by] != w.retriedBy[by] {
			w.found(fmt.Sprintf("a retry has one effect: %d retries of the %s were accepted, %d are in the outbox", w.retriedBy[by], by, accepted[by]))
		}
	}
	w.judgeJobs(ev.Books.Proof)
	w.judgeEdits(ev.Books.Proof)
	w.judgeRules(ev.Books.Proof)
}

// effect returns the error in the end of a retry, or "".
func (w *world) effect(ev *evidence, s *ledger.Sending, l *ledger.Entry) string {
	places := w.returned[s.Mark]
	if !s.Published.Stamp.IsZero() {
		at := verify.Place{Topic: s.Published.Topic, Partition: s.Published.Partition, Offset: s.Published.Offset}
		if !slices.Contains(places, at) {
			return fmt.Sprintf("it is said to be published at %v, and is not there", at)
		}
	}
	switch s.Outcome {
	case ledger.SendingStored:
		at, _ := w.ledger.Canonical(placeOf(l.Origin))
		d, e := ev.truth.At(at), w.sentAs(s)
		switch {
		case l.State != ledger.Resolved:
			return "it is stored, and its dead letter is " + string(l.State)
		case e != nil && e.isStored(ev):
		case e != nil:
			return "it is said to be stored, and not all of what it was edited to are rows"
		case l.Refused > 0 && w.apart(ev, places):
		case l.Refused > 0:
			return "it is said to be stored, and not each of its decisions has a row or a dead letter of its own"
		case d == nil || d.ID == "" || ev.rows[d.Identity()] == 0 || !verify.SameJSON(ev.bodies[d.Identity()], d.Body):
			return "it is said to be stored, and no row is this decision"
		}
	case ledger.SendingDead:
		if !slices.ContainsFunc(places, func(at verify.Place) bool { return len(ev.letters[at]) > 0 }) {
			return "it is said to be dead again, and no dead letter is its record"
		}
	}
	return ""
}

func placeOf(o envelope.Origin) verify.Place {
	return verify.Place{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Index: o.Index}
}
