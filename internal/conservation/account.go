package conservation

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"docket/internal/envelope"
	"docket/internal/home"
)

// Finding is something that is not as it has to be.
type Finding struct {
	Place Place
	ID    string // decision id or key; empty where it is not one of ours
	What  string
}

// String is the finding on one line.
func (f Finding) String() string {
	if f.ID == "" {
		return fmt.Sprintf("%v: %s", f.Place, f.What)
	}
	return fmt.Sprintf("%v (%s): %s", f.Place, f.ID, f.What)
}

// Account says what became of every decision that was produced. Each has at most one home here.
type Account struct {
	Produced    int
	Homes       map[home.Home]int
	DeadLetters map[string]int // found, distinct decisions by code
	Planted     map[string]int // what has to be found
	Lost        []Finding      // read and committed, and in no home
	Unread      []Finding      // in no home and not committed: there is time yet
	Doubled     []Finding      // in two homes that exclude each other, or twice in the table
	Invented    []Finding      // stored or forwarded, and never produced
	Altered     []Finding      // another payload, key or id than was produced
	Misplaced   []Finding      // in a home where it does not belong
}

// Housed is the number of decisions that have a home.
func (a *Account) Housed() int {
	n := 0
	for _, count := range a.Homes {
		n += count
	}
	return n
}

// Err is nil when everything that was produced has exactly one home and that is the right one. Otherwise it says how
// many have not and names the first few of each sort.
func (a *Account) Err() error {
	var errs []error
	for _, sort := range []struct {
		name     string
		findings []Finding
	}{
		{"lost", a.Lost},
		{"not read yet", a.Unread},
		{"in two homes", a.Doubled},
		{"never produced", a.Invented},
		{"altered", a.Altered},
		{"in the wrong home", a.Misplaced},
	} {
		if len(sort.findings) > 0 {
			errs = append(errs, fmt.Errorf("%d %s: %s", len(sort.findings), sort.name, first(sort.findings)))
		}
	}
	if a.Housed() != a.Produced {
		errs = append(errs, fmt.Errorf("%d decisions were produced and %d have a home", a.Produced, a.Housed()))
	}
	if !maps.Equal(a.DeadLetters, a.Planted) {
		errs = append(errs, errors.New("the dead letters are not those that were planted"))
	}
	return errors.Join(errs...)
}

func first(findings []Finding) string {
	const shown = 5
	var lines []string
	for _, f := range findings[:min(shown, len(findings))] {
		lines = append(lines, f.String())
	}
	if len(findings) > shown {
		lines = append(lines, "…")
	}
	return strings.Join(lines, "; ")
}

// found is what the evidence has of one decision.
type found struct {
	rows  int
	homes map[home.Home]string // forwarded: home to failure code
}

// Reconcile matches what was produced with what was found.
func Reconcile(l *Ledger, ev Evidence) *Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, byPlace := l.entries()
	a := &Account{
		Produced: len(list), Homes: make(map[home.Home]int),
		DeadLetters: make(map[string]int), Planted: make(map[string]int),
	}
	stored := a.matchRows(l, byPlace, ev)
	a.matchForwarded(l, byPlace, ev.Forwarded)
	wins := winners(list, stored)
	for _, e := range list {
		a.judge(e, wins[identityOf(e)], ev.Read)
	}
	return a
}

func identityOf(e *entry) identity { return identity{e.decision().ID, e.decision().Time} }

// matchRows finds the decision of each row and returns which decision the table has of each identity.
func (a *Account) matchRows(l *Ledger, byPlace map[Place]*entry, ev Evidence) map[identity]*entry {
	stored := make(map[identity]*entry, len(ev.Rows))
	for _, row := range ev.Rows {
		at, ok := l.canonical(row.Place)
		if !ok {
			a.Invented = append(a.Invented, Finding{row.Place, "", "a row"})
			continue
		}
		e := byPlace[at]
		id := identity{row.ID, row.Time.UTC()}
		if identityOf(e) != id {
			a.Altered = append(a.Altered, Finding{at, e.named(), "its row has another decision_id or ts"})
		}
		if _, twice := stored[id]; twice || e.rows > 0 {
			a.Doubled = append(a.Doubled, Finding{at, e.named(), "two rows"})
		}
		e.rows++
		stored[id] = e
	}
	for _, p := range ev.Changed {
		if at, ok := l.canonical(p); ok {
			a.Altered = append(a.Altered, Finding{at, byPlace[at].named(), "its row has another payload"})
		}
	}
	return stored
}

// matchForwarded finds the decision of each forwarded record. Copies in one home count once: a record whose
// acknowledgement was lost is sent again.
func (a *Account) matchForwarded(l *Ledger, byPlace map[Place]*entry, forwarded []Forwarded) {
	for _, f := range forwarded {
		at, ok := l.canonical(f.Place)
		if !ok || f.NoOrigin {
			a.Invented = append(a.Invented, Finding{f.Place, "", "found in " + f.Found})
			continue
		}
		e := byPlace[at]
		if !same(f.Value, e.record.forwarded(e.index)) || !same(f.Key, e.record.Key) {
			a.Altered = append(a.Altered, Finding{at, e.named(), "another key or value in " + f.Found})
		}
		origin := envelope.Origin{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Index: f.Index}
		if f.ID != envelope.ID(origin, f.Value) {
			a.Altered = append(a.Altered, Finding{at, e.named(), "another dead-letter id in " + f.Found})
		}
		if f.Settled {
			continue
		}
		if e.homes == nil {
			e.homes = make(map[home.Home]string, 1)
		}
		if code, again := e.homes[f.Home]; again && code != f.Code && f.Home == home.DeadLetter {
			a.Doubled = append(a.Doubled, Finding{at, e.named(), "dead-lettered as " + code + " and as " + f.Code})
		}
		e.homes[f.Home] = f.Code
	}
}

// same tells null from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// group is what the ledger has of one identity that can be stored.
type group struct {
	winner  []byte // the payload that the table has, else the first that was produced
	inTable bool
}

// winners finds for each identity which payload won its place in the table.
func winners(list []*entry, stored map[identity]*entry) map[identity]group {
	groups := make(map[identity]group, len(list))
	for _, e := range list {
		d := e.decision()
		if d.Code != "" {
			continue
		}
		id := identityOf(e)
		if _, known := groups[id]; known {
			continue
		}
		g := group{winner: d.Body}
		if row, ok := stored[id]; ok {
			g = group{winner: row.decision().Body, inTable: true}
		}
		groups[id] = g
	}
	return groups
}

// judge gives a decision its one home in the account and compares that with where it belongs.
func (a *Account) judge(e *entry, g group, read map[int32]int64) {
	d := e.decision()
	want := d.Code
	equal := want == "" && bytes.Equal(d.Body, g.winner)
	if want == "" && !equal {
		want = codeConflict
	}
	if want != "" {
		a.Planted[want]++
	}
	deadAs, dead := e.homes[home.DeadLetter]
	_, exhausted := e.homes[home.Exhausted]
	_, spooled := e.homes[home.Spooled]
	_, parked := e.homes[home.Parked]
	if ends := b2i(e.rows > 0) + b2i(dead) + b2i(exhausted); ends > 1 {
		a.Doubled = append(a.Doubled, Finding{e.place, e.named(), "has more than one of row, dead letter and parking dead letter"})
	}
	misplaced := func(what string) {
		a.Misplaced = append(a.Misplaced, Finding{e.place, e.named(), what})
	}
	if dead {
		a.DeadLetters[deadAs]++
	}
	switch {
	case e.rows > 0:
		a.Homes[home.Row]++
		if want != "" {
			misplaced("stored, and belongs with the dead letters as " + want)
		}
	case dead:
		a.Homes[home.DeadLetter]++
		if deadAs != want {
			misplaced(fmt.Sprintf("dead-lettered as %s, and belongs %s", deadAs, belongs(want)))
		}
	case exhausted:
		a.Homes[home.Exhausted]++
		misplaced("given up by the replayer, and belongs " + belongs(want))
	case equal && g.inTable:
		a.Homes[home.Duplicate]++
	case spooled:
		a.Homes[home.Spooled]++
	case parked:
		a.Homes[home.Parked]++
	case e.place.Offset >= read[e.place.Partition]:
		a.Unread = append(a.Unread, Finding{e.place, e.named(), "belongs " + belongs(want)})
	default:
		a.Lost = append(a.Lost, Finding{e.place, e.named(), "belongs " + belongs(want)})
	}
}

func belongs(code string) string {
	if code == "" {
		return "in the table"
	}
	return "with the dead letters as " + code
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Codes lists every failure code that was planted or found, in order.
func (a *Account) Codes() []string {
	codes := maps.Clone(a.Planted)
	maps.Copy(codes, a.DeadLetters)
	return slices.Sorted(maps.Keys(codes))
}
