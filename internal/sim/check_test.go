//go:build synctests

package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/conservation"
	"docket/internal/envelope"
	"docket/internal/home"
)

// letter is a forwarded record with where it lies.
type letter struct {
	conservation.Forwarded
	topic     string
	partition int32
	offset    int64
	record    *kgo.Record
}

// evidence is what is found outside when nothing moves any more.
type evidence struct {
	conservation.Evidence
	letters map[conservation.Place][]letter
	rows    map[conservation.Place]int // position in the table, from 1
	byKey   map[identity]int
}

// identity is what makes two decisions one for the table.
type identity struct {
	id string
	at int64
}

// gather looks into every home.
func (w *world) gather() *evidence {
	ev := &evidence{letters: map[conservation.Place][]letter{}, rows: map[conservation.Place]int{}, byKey: map[identity]int{}}
	ev.Read = committed(w.kafka.Cluster, consumers, source)
	settled := committed(w.kafka.Cluster, replayers, parked)
	homes := map[string]home.Home{parked: home.Parked, dead: home.DeadLetter, exhausted: home.Exhausted}
	for _, s := range w.slots {
		ev.Forwarded = append(ev.Forwarded, durable(s)...)
	}
	for _, r := range w.kafka.ReadAll(w.t, parked, dead, exhausted) {
		f := conservation.ForwardedOf(r, homes[r.Topic], r.Topic)
		f.Settled = r.Topic == parked && r.Offset < settled[r.Partition]
		ev.Forwarded = append(ev.Forwarded, f)
		at, _ := w.ledger.Canonical(f.Place)
		ev.letters[at] = append(ev.letters[at], letter{f, r.Topic, r.Partition, r.Offset, r})
	}
	bodies := map[conservation.Place][]byte{}
	w.ledger.Each(func(at conservation.Place, _ []byte, d conservation.Decision) { bodies[at] = d.Body })
	for i, r := range w.db.Rows() {
		at := conservation.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: int(r.Index)}
		ev.Rows = append(ev.Rows, conservation.Row{Place: at, ID: r.DecisionID, Time: r.Time})
		ev.rows[at] = i + 1
		ev.byKey[identity{r.DecisionID, r.Time.UnixMicro()}] = i + 1
		if body, ok := bodies[at]; ok && !bytes.Equal(body, r.Raw) {
			ev.Changed = append(ev.Changed, at)
		}
	}
	return ev
}

// judge decides whether everything is where it belongs, and was at every commit.
func (w *world) judge() {
	ev := w.gather()
	if err := conservation.Reconcile(w.ledger, ev.Evidence).Err(); err != nil {
		w.found(err.Error())
	}
	w.judgeCommits(ev)
	w.judgeHolds(ev)
}

// aBatch is how long what was decided before a fault may still be under way.
const aBatch = 3 * time.Second

// judgeHolds asks whether anything was dead-lettered on the database's word while it refused everything (I11). A process
// that stood still may say late what it knew before.
func (w *world) judgeHolds(ev *evidence) {
	for _, e := range w.plan.Events {
		if e.What == "stand still" {
			return
		}
	}
	for _, e := range w.plan.Events {
		if e.What != "database refuses all" && e.What != "read-only" && e.What != "database disk full" {
			continue
		}
		for at, letters := range ev.letters {
			for _, l := range letters {
				failed, err := time.Parse(time.RFC3339Nano, header(l.record, envelope.FailedAt))
				if err != nil {
					continue // it went with the necessary headers alone
				}
				when := failed.Sub(w.history.began)
				if l.topic == dead && header(l.record, envelope.FailureKind) == string(envelope.Data) && when > e.At+aBatch && when < e.At+e.For {
					w.found(fmt.Sprintf("I11: %v was dead-lettered at %v, in the middle of %v\n%s", at, when, e, w.story(ev, at)))
					return
				}
			}
		}
	}
}

// judgeCommits asks of every commit whether all that it passes had a home at that moment (I1), and that commits never
// decrease (I8).
func (w *world) judgeCommits(ev *evidence) {
	type decision struct {
		at  conservation.Place
		row int // that has its identity and its payload, 0: none
	}
	var all []decision
	bodies := w.db.Rows()
	w.ledger.Each(func(at conservation.Place, _ []byte, d conservation.Decision) {
		own := decision{at: at}
		if n := ev.byKey[identity{d.ID, d.Time.UnixMicro()}]; n > 0 && d.ID != "" && bytes.Equal(bodies[n-1].Raw, d.Body) {
			own.row = n
		}
		all = append(all, own)
	})
	last := map[string]map[int32]int64{}
	for _, c := range w.clerk.commits {
		for _, group := range []string{consumers, replayers} {
			for p, at := range c.before[group] {
				if at < last[group][p] {
					w.found(fmt.Sprintf("I8: %s went back from %d to %d in partition %d, seen at %v", group, last[group][p], at, p, c.at))
					return
				}
			}
			last[group] = c.before[group]
		}
		spooled := map[conservation.Place]bool{}
		for _, p := range c.spool {
			at, _ := w.ledger.Canonical(p)
			spooled[at] = true
		}
		for _, d := range all {
			if d.at.Offset >= c.source[d.at.Partition] || d.row > 0 && d.row <= c.rows || spooled[d.at] {
				continue
			}
			if !slices.ContainsFunc(ev.letters[d.at], func(l letter) bool {
				return l.offset < c.ends[l.topic][l.partition] && (l.topic != parked || l.offset >= c.parked[l.partition])
			}) {
				w.found(fmt.Sprintf("I1: when at %v %s was committed, %v had no home\n%s", c.at, c.asked, d.at, w.story(ev, d.at)))
				return
			}
		}
	}
}

// story is all that is known of a decision.
func (w *world) story(ev *evidence, at conservation.Place) string {
	var b strings.Builder
	if n := ev.rows[at]; n > 0 {
		fmt.Fprintf(&b, "    row %d, stored at %v\n", n, w.db.Rows()[n-1].At.Sub(w.history.began))
	}
	for _, l := range ev.letters[at] {
		fmt.Fprintf(&b, "    %s/%d/%d %s, code %s, attempt %s, forwarded at %v by %s\n", l.topic, l.partition, l.offset, l.Found, l.Code,
			header(l.record, "x-retry-attempt"), l.record.Timestamp.Sub(w.history.began), header(l.record, "x-consumer"))
	}
	for _, c := range w.clerk.commits {
		if c.before[consumers][at.Partition] <= at.Offset && c.source[at.Partition] > at.Offset {
			fmt.Fprintf(&b, "    passed at %v by %s\n", c.at, c.asked)
		}
	}
	return b.String()
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
