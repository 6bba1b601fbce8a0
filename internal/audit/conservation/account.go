package conservation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"docket/internal/audit/verify"
	"docket/internal/record/home"
)

// Account says what became of every produced decision. Each has at most one home here.
type Account struct {
	Produced    int
	Homes       map[home.Home]int
	DeadLetters map[string]int // found, distinct decisions by code
	Planted     map[string]int // expected
	Lost        []Finding      // read and committed, and in no home
	Unread      []Finding      // in no home and not committed: not late yet
	Doubled     []Finding      // in two homes that exclude each other, or twice in the table
	Invented    []Finding      // stored or forwarded, and never produced
	Altered     []Finding      // another payload, key or id than produced
	Misplaced   []Finding      // in the wrong home
}

// Housed returns the number of decisions with a home.
func (a *Account) Housed() int {
	n := 0
	for _, count := range a.Homes {
		n += count
	}
	return n
}

// Err returns nil if every produced decision has exactly one home, the right one. Otherwise it counts the others and
// names the first few of each kind.
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

// Reconcile matches produced with found decisions.
func Reconcile(l *Produced, ev Evidence) *Account {
	truth := l.Truth()
	a := &Account{
		Produced: truth.Len(), Homes: make(map[home.Home]int),
		DeadLetters: make(map[string]int), Planted: make(map[string]int),
	}
	summary := verify.DecidePart(&ev, truth)
	a.Lost, a.Doubled, a.Altered = summary.Of("I1").Found, summary.Of("I2").Found, summary.Of("I3").Found
	a.Invented = summary.Of("I4").Found
	if v := summary.Of("I5"); v.State != verify.Warned {
		a.Misplaced = v.Found
	}
	for _, f := range verify.Fates(&ev, truth) {
		a.judge(f)
	}
	return a
}

// judge adds one decision to the account.
func (a *Account) judge(f verify.Fate) {
	note := func(list *[]Finding, what string) {
		id := f.ID
		if id == "" {
			id = f.KeyText
		}
		*list = append(*list, Finding{Place: f.Place, ID: id, What: what})
	}
	if f.Code != "" {
		a.Planted[f.Code]++
	}
	if len(f.DeadAs) > 0 {
		a.DeadLetters[f.DeadAs[0]]++
	}
	if len(f.DeadAs) > 1 {
		note(&a.Doubled, "dead-lettered as "+strings.Join(f.DeadAs, " and as "))
	}
	if f.Ends > 1 {
		note(&a.Doubled, "has more than one of row, dead letter and parking dead letter")
	}
	switch {
	case f.Home == home.Row && f.Code != "":
		note(&a.Misplaced, "stored, and belongs with the dead letters as "+f.Code)
	case f.Home == home.None && !f.Read:
		note(&a.Unread, "committed by nobody yet")
	}
	if f.Home != home.None {
		a.Homes[f.Home]++
	}
}

// Codes returns every failure code that was planted or found, in order.
func (a *Account) Codes() []string {
	codes := maps.Clone(a.Planted)
	maps.Copy(codes, a.DeadLetters)
	return slices.Sorted(maps.Keys(codes))
}
