//go:build synctests

package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/record/home"
	"docket/internal/service/config"
	"docket/internal/testkit/pgmodel"
)

// letter is a forwarded record with its place.
type letter struct {
	*verify.Forwarded
	record *kgo.Record
}

// evidence is the final state, found from outside.
type evidence struct {
	verify.Evidence
	truth   *verify.Truth
	ledger  *conservation.Produced    // the truth for the account
	records []*kgo.Record             // of the topics, in the order of Forwarded after the spooled ones
	letters map[verify.Place][]letter // of the topics, by canonical place
	rows    map[verify.Identity]int   // position in the table, from 1
	stored  map[verify.Identity]int64 // number of the transaction that stored it
	bodies  map[verify.Identity][]byte
}

// gather reads every home.
func (w *world) gather() *evidence {
	ev := &evidence{letters: map[verify.Place][]letter{}, rows: map[verify.Identity]int{}, stored: map[verify.Identity]int64{}, bodies: map[verify.Identity][]byte{}}
	ev.At, ev.AllRows, ev.Settled = time.Now(), true, true
	ev.Committed, ev.Ends = offsetsOf(w.committedIn()), verify.Offsets{}
	for _, topic := range w.sources() {
		ev.Ends.Add(topic, ends(w.kafka.Cluster, topic))
	}
	w.adopt()
	rows := w.db.Rows()
	for _, s := range w.slots {
		if s.program == config.Desk {
			continue
		}
		ev.Spool = append(ev.Spool, w.lookInto(s))
		ev.Forwarded = append(ev.Forwarded, durable(s)...)
	}
	ev.Replayed = committed(w.kafka.Cluster, replayers, parked)
	homes := map[string]home.Home{parked: home.Parked, dead: home.DeadLetter, exhausted: home.Exhausted}
	letters, keys := []letter{}, w.deskSettings().HeaderKeys()
	for _, r := range w.kafka.ReadAll(w.t, parked, dead, exhausted) {
		for _, f := range verify.AllForwardedBy(keys, r, homes[r.Topic], r.Topic) {
			f.Settled = r.Topic == parked && r.Offset < ev.Replayed[r.Partition]
			letters = append(letters, letter{&f, r})
		}
	}
	outlived := w.outlived(rows, letters)
	ev.Forwarded = slices.DeleteFunc(ev.Forwarded, outlived)
	spooled := len(ev.Forwarded)
	for _, l := range letters {
		if outlived(*l.Forwarded) {
			at, _ := w.ledger.Canonical(l.Place)
			ev.letters[at] = append(ev.letters[at], l) // it was a home until the other came
			continue
		}
		ev.Forwarded, ev.records = append(ev.Forwarded, *l.Forwarded), append(ev.records, l.record)
	}
	ev.ledger = w.deserved(rows, ev.Forwarded)
	ev.truth = ev.ledger.Truth()
	for i, r := range ev.records {
		f := &ev.Forwarded[spooled+i]
		at := f.Place
		if d := ev.truth.At(at); d != nil {
			at = d.Place
		}
		ev.letters[at] = append(ev.letters[at], letter{f, r})
	}
	for i, r := range w.unmasked(rows) {
		at := verify.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: int(r.Index)}
		ev.Rows = append(ev.Rows, verify.Row{Place: at, ID: r.DecisionID, Time: r.Time, StoredAt: r.At, Raw: bytesOf(&r)})
		ev.rows[identity(r.DecisionID, r.Time)] = i + 1
		ev.stored[identity(r.DecisionID, r.Time)] = r.Commit
		ev.bodies[identity(r.DecisionID, r.Time)] = bytesOf(&r)
	}
	ev.Metrics = w.metrics
	ev.Books = w.lookIntoBooks(ev)
	return ev
}

func identity(id string, at time.Time) verify.Identity {
	return verify.Identity{ID: id, Time: at.UTC().Truncate(time.Microsecond)}
}

// lookInto lists the spool of a slot.
func (w *world) lookInto(s *slot) verify.SpoolDir {
	dir := verify.SpoolDir{Dir: s.name, Mode: 0o700}
	for _, name := range s.fs().Files(".") {
		file := verify.SpoolFile{Name: name, Mode: 0o600}
		if strings.HasSuffix(name, ".jsonl.gz") {
			found, err := verify.ReadSpoolFile(bytes.NewReader(s.fs().Content(name)), name)
			if file.Lines = len(found); err != nil {
				file.Broken = err.Error()
			}
		}
		dir.Files = append(dir.Files, file)
	}
	return dir
}

// judge checks that every decision is in its home, and was at every commit.
func (w *world) judge() {
	ev := w.gather()
	h := w.told(ev)
	summary := verify.Decide(&ev.Evidence, ev.truth, h)
	w.undecided(summary)
	for _, v := range summary.Results {
		if v.State == verify.Held || v.State == verify.Undecided {
			continue
		}
		text := v.String()
		for _, line := range v.Found[0].History {
			text += "\n      " + line
		}
		w.found(text + "\n" + w.story(ev, v.Found[0].Place))
	}
	if account := conservation.Reconcile(ev.ledger, ev.Evidence).Err(); account != nil {
		w.found("account: " + account.Error())
	}
	w.judgeTable(ev)
	w.judgeDesk(ev)
	w.judgeHolds(ev)
}

// judgeHolds checks two properties of every process that the final state does not show. No batch continued before a
// probe passed (I11). A dead letter blamed by the database was refused alone, twice, with a probe afterwards (I5).
func (w *world) judgeHolds(ev *evidence) {
	shared, seen, twins := map[int64]bool{}, map[int64]int{}, map[verify.Identity]map[verify.Place]bool{}
	for _, d := range ev.truth.Decisions() {
		if d.ID == "" {
			continue
		}
		at := d.Time.UnixMicro()
		if seen[at]++; seen[at] > 1 || parkedTwice(ev.letters[d.Place]) {
			shared[at] = true
		}
		if twins[d.Identity()] == nil {
			twins[d.Identity()] = map[verify.Place]bool{}
		}
		twins[d.Identity()][d.Place] = true
	}
	for _, p := range w.processes() {
		for _, wrong := range w.witness.resumed(p, shared) {
			w.found("I11 a hold holds: " + wrong)
			break
		}
	}
	by := map[string]*process{}
	for _, p := range w.processes() {
		by[p.name] = p
	}
	for _, d := range ev.truth.Decisions() {
		for _, l := range ev.letters[d.Place] {
			p := by[l.by()]
			if p != nil && l.Home != home.DeadLetter && l.Attempt > 0 && !w.witness.proved(p, p.before(l.FailedAt.Add(-aBatch)), l.FailedAt) {
				w.found(fmt.Sprintf("I11 a hold holds: %v: %s counted an attempt at %v and saw no probe pass\n%s", d.Place, p.name, w.history.at(l.FailedAt), w.story(ev, d.Place)))
				return
			}
			if p == nil || p.hasStood() || l.Home != home.DeadLetter || l.FailedAt.IsZero() || len(l.Code) != 5 || l.Code[:2] != "22" && l.Code[:2] != "23" {
				continue
			}
			if wrong := w.witness.accused(p, d.Place, l.FailedAt, twins[d.Identity()]); wrong != "" {
				w.found(fmt.Sprintf("I5 dead letters deserve it: %v: %s\n%s", d.Place, wrong, w.story(ev, d.Place)))
				return
			}
		}
	}
}

// parkedTwice reports whether a decision is in two partitions of the parking topic. A replayer that holds one of them may
// be assigned the other and try it.
func parkedTwice(letters []letter) bool {
	in := map[int32]bool{}
	for _, l := range letters {
		if l.Home == home.Parked {
			in[l.At.Partition] = true
		}
	}
	return len(in) > 1
}

// by returns the process that forwarded a record, or "" if only the necessary headers were sent.
func (l letter) by() string {
	_, name, _ := strings.Cut(header(l.record, "x-consumer"), "/")
	return name
}

// pending is a decision that has not reached its last home.
type pending struct {
	at      verify.Place
	id      verify.Identity
	row     int64 // transaction that stored its row with its payload, 0: none
	letters []letter
}

// homeless reports whether the decision had no home at a commit; forGood that it had a final one. A row that the
// standby did not have was not a home, even if no promotion lost it later.
func (d *pending) homeless(c *commit, spooled map[verify.Place]bool) (homeless, forGood bool) {
	if d.row > 0 && d.row <= c.stored && !c.alone[d.id] {
		return false, true
	}
	homeless = !spooled[d.at]
	for _, l := range d.letters {
		if l.At.Offset >= c.ends[l.Found][l.At.Partition] {
			continue
		}
		if l.Home != home.Parked {
			return false, true
		}
		if l.At.Offset >= c.parked[l.At.Partition] {
			homeless = false
		}
	}
	return homeless, false
}

// commits checks for every commit that all decisions before it had a home at that moment (I1, I8). It returns the
// commits with the offset before each.
func (w *world) commits(ev *evidence) (all []verify.Commit) {
	open := map[verify.Partition][]*pending{}
	for _, d := range ev.truth.Decisions() {
		own := &pending{at: d.Place, id: d.Identity(), letters: ev.letters[d.Place]}
		if n := ev.stored[d.Identity()]; n > 0 && d.ID != "" && verify.SameJSON(ev.bodies[d.Identity()], d.Body) {
			own.row = n
		}
		in := verify.Partition{Topic: d.Topic, Number: d.Partition}
		open[in] = append(open[in], own)
	}
	groups := []string{replayers}
	for _, l := range w.lanes {
		groups = append(groups, l.group)
	}
	last := map[string]map[int32]int64{}
	for i := range w.clerk.commits {
		c := &w.clerk.commits[i]
		at := w.history.began.Add(c.at)
		for _, group := range groups {
			for p, offset := range c.before[group] {
				if offset != last[group][p] {
					all = append(all, verify.Commit{At: at, Group: group, Topic: w.topicOf(group), Partition: p, Offset: offset, End: -1, Lowest: -1, Outcome: verify.Succeeded})
				}
			}
			last[group] = c.before[group]
		}
		spooled := map[verify.Place]bool{}
		for _, p := range c.spool {
			if d := ev.truth.At(p); d != nil {
				spooled[d.Place] = true
			}
		}
		for _, l := range w.lanes {
			for p, upTo := range c.sources[l.topic] {
				lowest := w.lowest(c, open, verify.Partition{Topic: l.topic, Number: p}, upTo, spooled)
				asked, own := c.offsets[p]
				own = own && c.group == l.group
				if lowest >= 0 && !own {
					w.found(fmt.Sprintf("I1 no loss: when at %v %s was committed, %s/%d/%d had no home any more", c.at, c.asked, l.topic, p, lowest))
				}
				if own {
					if lowest < 0 {
						lowest = asked
					}
					all = append(all, verify.Commit{At: at, Process: c.member, Group: c.group, Topic: l.topic, Partition: p, Offset: asked, End: c.ends[l.topic][p], Lowest: lowest, Outcome: verify.Unknown})
				}
			}
		}
		if c.group == replayers {
			for p, asked := range c.offsets {
				all = append(all, verify.Commit{At: at, Process: c.member, Group: c.group, Topic: parked, Partition: p, Offset: asked, End: c.ends[parked][p], Lowest: -1, Outcome: verify.Unknown})
			}
		}
	}
	return all
}

// lowest returns the lowest offset below upTo with a decision that has no home at a commit; -1: all have one.
func (w *world) lowest(c *commit, open map[verify.Partition][]*pending, p verify.Partition, upTo int64, spooled map[verify.Place]bool) int64 {
	lowest, kept := int64(-1), open[p][:0]
	for _, d := range open[p] {
		if d.at.Offset >= upTo {
			kept = append(kept, d)
			continue
		}
		homeless, forGood := d.homeless(c, spooled)
		if homeless && lowest < 0 {
			lowest = d.at.Offset
		}
		if !forGood {
			kept = append(kept, d)
		}
	}
	open[p] = kept
	return lowest
}

// story lists all facts about a decision.
func (w *world) story(ev *evidence, at verify.Place) string {
	var b strings.Builder
	group := w.groupOf(at.Topic)
	if group == "" {
		return ""
	}
	if d := ev.truth.At(at); d != nil && ev.rows[d.Identity()] > 0 {
		n := ev.rows[d.Identity()]
		fmt.Fprintf(&b, "    row %d, stored at %v\n", n, w.history.at(ev.Rows[n-1].StoredAt))
	}
	for _, l := range ev.letters[at] {
		fmt.Fprintf(&b, "    %s/%d/%d %s, code %s, attempt %d, forwarded at %v by %s\n", l.Found, l.At.Partition, l.At.Offset, l.Kind, l.Code,
			l.Attempt, w.history.at(l.Stamp), l.by())
	}
	for _, c := range w.clerk.commits {
		if c.before[group][at.Partition] <= at.Offset && c.sources[at.Topic][at.Partition] > at.Offset {
			fmt.Fprintf(&b, "    passed at %v by %s\n", c.at, c.asked)
		}
	}
	for _, p := range w.processes() {
		for _, t := range w.witness.of(p) {
			if i := slices.Index(t.rows, at); i >= 0 {
				fmt.Fprintf(&b, "    %v tried by %s among %d, answered %q\n", w.history.at(t.at), p.name, len(t.rows), t.code)
			}
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

// bytesOf returns the original bytes of a row's decision, as far as the row has them.
func bytesOf(r *pgmodel.Row) []byte {
	if r.Bytes != nil {
		return r.Bytes
	}
	return r.Raw
}
