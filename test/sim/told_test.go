//go:build synctests

package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// told is the history for the checker.
func (w *world) told(ev *evidence) *verify.History {
	h := &verify.History{
		Seed: fmt.Sprint(w.plan.Seed), Commits: w.commits(ev), Faults: w.faults(), Publishes: w.published(ev),
		Heals: []time.Time{w.healed}, Settled: w.settled, Pauses: w.slots[0].settings.RetryPauses,
		RebalanceTimeout: rebalanced, Reference: reference(ev), Texts: w.texts(ev), Markers: markers,
		Claims: w.asks.told(), Moved: w.moved(ev),
		Backlog: 1, Rate: 1 / (2 * longestRest.Seconds()), // time to settle besides the promised minute
	}
	for _, p := range w.processes() {
		h.Attempts = append(h.Attempts, w.witness.attempts(p, h.Pauses)...)
		life := verify.Process{Name: p.name, Began: p.began}
		select {
		case <-p.ended:
			life.Ended = p.endedAt
		default:
		}
		h.Processes = append(h.Processes, life)
		if p.wasStopped() {
			h.Kills = append(h.Kills, verify.Kill{At: p.stoppedAt, Process: p.name})
		}
	}
	return h
}

// aBatch is how long decisions from before a fault may still take effect.
const aBatch = 1500 * time.Millisecond

// published returns the records in the topics, each with the moment of the decision to send it there. Records that do
// not depend on the database are left out: a hold does not stop them.
func (w *world) published(ev *evidence) (all []verify.Publish) {
	by := map[string]*process{}
	for _, p := range w.processes() {
		by[p.name] = p
	}
	for _, d := range ev.truth.Decisions() {
		for _, l := range ev.letters[d.Place] {
			if l.FailedAt.IsZero() || l.Kind == string(envelope.Decode) || l.Kind == string(envelope.Conflict) {
				continue
			}
			p := verify.Publish{At: l.FailedAt, Process: l.by(), Home: l.Home, ID: l.ID, Begun: l.FailedAt.Add(-aBatch), Outcome: verify.Succeeded}
			if late := by[l.by()]; late != nil {
				p.Begun = late.before(p.Begun)
			}
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b verify.Publish) int { return a.At.Compare(b.At) })
	return all
}

// before returns the beginning of the last pause that lasted at a time. Acts after it may be based on facts from
// before it.
func (p *process) before(at time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, span := range p.stood {
		if !at.Before(span[0]) && !at.After(span[1]) {
			at = span[0].Add(-aBatch)
		}
	}
	return at
}

// faults converts the events of the schedule for the checker.
func (w *world) faults() (all []verify.Fault) {
	for i, e := range w.plan.Events {
		f := verify.Fault{
			From: w.history.began.Add(e.At), To: w.history.began.Add(e.At + e.For), Kind: kindOf(e), Name: e.key(),
		}
		f.Systemic, f.Code = refusesAll(e)
		f.Alone = f.Systemic && !slices.Contains(datas, f.Code) && !w.accompanied(i)
		if !f.Alone && f.Code == "53100" {
			f.Code = "" // records that fail for another reason meanwhile may be parked
		}
		all = append(all, f)
	}
	return all
}

// refusesAll reports whether an event makes the database refuse every row for a lasting reason.
func refusesAll(e event) (bool, string) {
	switch e.What {
	case "database refuses all":
		return true, e.Arg
	case "read-only":
		return true, "25006"
	case "database disk full":
		return true, "53100"
	}
	return false, ""
}

// accompanied reports whether the database had another fault around an event.
func (w *world) accompanied(i int) bool {
	const around = 6 * time.Second
	e := w.plan.Events[i]
	for k, o := range w.plan.Events {
		if k == i || o.At > e.At+e.For || o.At+o.For+around < e.At {
			continue
		}
		if kind := kindOf(o); kind == "database" || kind == verify.FaultStop || o.Arg == toDatabase {
			return true
		}
	}
	return false
}

func kindOf(e event) string {
	switch e.What {
	case "stand still":
		return verify.FaultStop
	case "mute", "hang up":
		return verify.FaultNetwork
	}
	for kind, list := range map[string][]evil{"process": ofProcesses(), verify.FaultBroker: ofBrokers(), "database": ofTheDatabase(), "disk": ofDisks(), "ledger": ofTheLedger()} {
		if slices.ContainsFunc(list, func(o evil) bool { return o.name == e.What }) {
			return kind
		}
	}
	if e.Arg == toDatabase {
		return "network to the database"
	}
	return verify.FaultNetwork
}

// reference is the result of a run without faults: one row for each identity, all others in their homes. Any payload
// of an identity may come first, so here it is the one that did.
func reference(ev *evidence) *verify.Evidence {
	ref := &verify.Evidence{AllRows: true, Settled: true}
	winner := map[verify.Identity]*verify.Decision{}
	all := ev.truth.Decisions()
	for _, d := range all {
		if d.Code != "" {
			continue
		}
		first := winner[d.Identity()]
		body := ev.bodies[d.Identity()]
		if first == nil || verify.SameJSON(d.Body, body) && !verify.SameJSON(first.Body, body) {
			winner[d.Identity()] = d
		}
	}
	for _, d := range all {
		first := winner[d.Identity()]
		switch {
		case d.Code == "" && first == d:
			ref.Rows = append(ref.Rows, verify.Row{Place: d.Place, ID: d.ID, Time: d.Time, Raw: d.Body})
		case d.Code != "" || string(first.Body) != string(d.Body):
			ref.Forwarded = append(ref.Forwarded, verify.Forwarded{Place: d.Place, Home: home.DeadLetter, Found: dead, Key: d.Key, Value: d.Value})
		}
	}
	return ref
}

// Markers in payloads, in the password and in the key of headers. No output may contain them.
const (
	inPayloads  = "marker-of-a-payload"
	inPassword  = "marker-of-a-password"
	inHeaderKey = "marker-of-a-header-key-of-32-bytes"
)

var markers = []string{inPayloads, inPassword, inHeaderKey}

// texts are all outputs of the processes, and the headers that they added.
func (w *world) texts(ev *evidence) (all []verify.Text) {
	for _, p := range w.processes() {
		all = append(all, verify.Text{Name: "the log of " + p.name, Body: p.shown.text.String()})
	}
	var b strings.Builder
	for _, r := range ev.records {
		for _, h := range r.Headers {
			b.WriteString(h.Key)
			b.WriteByte('=')
			b.Write(h.Value)
			b.WriteByte('\n')
		}
	}
	return append(all, verify.Text{Name: "headers", Body: b.String()})
}

// openEnds are the invariants that some schedules left undecided, with reason and number.
var openEnds = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

func (w *world) undecided(r *verify.Summary) {
	openEnds.Lock()
	defer openEnds.Unlock()
	for _, v := range r.Results {
		if v.State == verify.Undecided {
			openEnds.of[v.Invariant+": "+v.Note]++
		}
	}
}
