//go:build integration

package ledgerdb_test

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	gocmp "github.com/google/go-cmp/cmp"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

// modelled is a ledger of some hundred dead letters that SQL put there, and the same in Go.
type modelled struct {
	*ledgerdb.Ledger
	db      *pgtest.DB
	letters []ledger.Entry
	first   map[string]time.Time // when a group was first seen
	groups  map[string]envelope.Cause
	few     int // dead letters of a range that are read one by one
}

var monday = time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC)

const modelledGroups = 9

func newModelled(t testing.TB, n int, seed uint64) *modelled {
	t.Helper()
	d := pgtest.New(t)
	m := &modelled{Ledger: ledgerdb.New(open(t, d.URL, 20*time.Second).DB), db: d, first: map[string]time.Time{}, groups: map[string]envelope.Cause{}, few: 1 << 30}
	random := rand.New(rand.NewPCG(seed, 1))
	var fingerprints []string
	kinds := []envelope.Kind{envelope.Decode, envelope.Data, envelope.Data, envelope.Conflict, envelope.Transient}
	for i := range modelledGroups {
		fp := fmt.Sprintf("%04x%012x", 0xabc0+i/3, i) // three share their first four characters
		c := envelope.Cause{Kind: kinds[i%len(kinds)], Code: []string{"23514", "22P02"}[i%2], Table: "t", Column: "c", Constraint: fmt.Sprint("k", i), Message: fmt.Sprint("group ", i)}
		fingerprints, m.groups[fp], m.first[fp] = append(fingerprints, fp), c, monday.Add(time.Duration(i)*time.Minute)
		d.Exec(t, `INSERT INTO dead_letter_groups (fingerprint, kind, code, "table", "column", "constraint", message, first_seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			fp, string(c.Kind), c.Code, c.Table, c.Column, c.Constraint, c.Message, m.first[fp])
	}
	for i := range n {
		fp := fingerprints[min(random.IntN(modelledGroups), random.IntN(modelledGroups))]
		e := ledger.Entry{Fingerprint: fp, State: ledger.Pending, SeenAt: monday, ChangedBy: "desk", Why: "read", Attempts: 0}
		e.ID = hex.EncodeToString(binaryID(random))
		e.Cause = m.groups[fp]
		e.Cause.Message = fmt.Sprint("letter ", i)
		e.Path = []string{"", "a/b", "a/c", "d", "e", "f", "g"}[min(random.IntN(7), random.IntN(7))]
		e.Origin = envelope.Origin{Topic: []string{"decision-logs", "other"}[random.IntN(5)/4], Partition: int32(random.IntN(3)), Offset: int64(i), Index: envelope.NoIndex}
		// Many fail at the same microsecond, and some at the stroke of a day.
		e.FailedAt = monday.Add(time.Duration(random.IntN(20)) * 6 * time.Hour).Add(time.Duration(random.IntN(3)) * time.Microsecond)
		e.FirstFailedAt = e.FailedAt.Add(-time.Duration(random.IntN(5)) * time.Hour)
		e.Found = ledger.Found{Topic: []string{"dlq", "parking-dlq"}[i%2], Offset: int64(i), Stamp: e.FailedAt.Add(time.Duration(random.IntN(1000)) * time.Second)}
		d.Exec(t, `INSERT INTO dead_letters (dead_letter_id, group_id, path, origin_topic, origin_partition, origin_offset, found_topic, found_partition, found_offset, found_at,
				key, value, message, first_failed_at, last_failed_at, seen_at, changed_by, changed_act, why)
			SELECT $1, group_id, $2, $3, $4, $5, $6, 0, $5, $7, 'k', 'v', $8, $9, $10, $11, 'desk', 'entered', 'read' FROM dead_letter_groups WHERE fingerprint = $12`,
			e.ID, e.Path, e.Origin.Topic, e.Origin.Partition, e.Origin.Offset, e.Found.Topic, e.Found.Stamp, e.Cause.Message, e.FirstFailedAt, e.FailedAt, e.SeenAt, fp)
		m.letters = append(m.letters, e)
	}
	for i := range m.letters {
		for _, to := range [][]ledger.State{nil, nil, {ledger.Resolved}, {ledger.Processing}, {ledger.Processing, ledger.Failed}}[random.IntN(5)] {
			m.move(t, i, to)
		}
	}
	return m
}

func binaryID(random *rand.Rand) []byte {
	b := make([]byte, 32)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// move moves a letter by SQL, as the desk would.
func (m *modelled) move(t testing.TB, i int, to ledger.State) {
	t.Helper()
	act := map[ledger.State]ledger.Act{ledger.Resolved: ledger.Closed, ledger.Processing: ledger.Retried, ledger.Failed: ledger.Refused}[to]
	m.db.Exec(t, `UPDATE dead_letters SET state = $2::dead_letter_state, changed_at = clock_timestamp(), changed_by = 'ann', changed_act = $3, why = 'so' WHERE dead_letter_id = $1`,
		m.letters[i].ID, string(to), string(act))
	m.letters[i].State, m.letters[i].ChangedBy, m.letters[i].Why = to, "ann", "so"
}

// wholePaths are the paths of each group at all times and places, where a filter takes them from the counters; else nil.
func (m *modelled) wholePaths(f ledger.Filter) map[string]map[string]int64 {
	dated := !f.From.IsZero() || !f.To.IsZero()
	counted := f.Path == "" && f.AttemptsBelow == 0 && (f.Topic != "" || f.Partition != nil || dated)
	if counted && dated {
		const day = 24 * time.Hour
		from, to := f.From.Add(day-1).Truncate(day), f.To.Truncate(day)
		touched := 0
		for _, e := range m.letters {
			if !e.FailedAt.Before(f.From.Truncate(day)) && (f.To.IsZero() || e.FailedAt.Before(f.To.Add(day-1).Truncate(day))) {
				touched++
			}
		}
		counted = m.few < touched && (f.From.IsZero() || f.To.IsZero() || from.Before(to))
	}
	if !counted {
		return nil
	}
	f.From, f.To, f.Topic, f.Partition = time.Time{}, time.Time{}, "", nil
	paths := map[string]map[string]int64{}
	for _, e := range m.chosen(f) {
		if paths[e.Fingerprint] == nil {
			paths[e.Fingerprint] = map[string]int64{}
		}
		if e.Path != "" {
			paths[e.Fingerprint][e.Path]++
		}
	}
	return paths
}

func fits(f ledger.Filter, e ledger.Entry) bool {
	return strings.HasPrefix(e.Fingerprint, strings.ToLower(f.Fingerprint)) && (f.Kind == "" || f.Kind == e.Cause.Kind) && (f.Code == "" || f.Code == e.Cause.Code) &&
		(f.Path == "" || f.Path == e.Path) && (len(f.States) == 0 || slices.Contains(f.States, e.State)) && (f.From.IsZero() || !e.FailedAt.Before(f.From)) &&
		(f.To.IsZero() || e.FailedAt.Before(f.To)) && (f.Topic == "" || f.Topic == e.Origin.Topic) && (f.Partition == nil || *f.Partition == e.Origin.Partition) &&
		(f.AttemptsBelow == 0 || e.Attempts < f.AttemptsBelow)
}

// tried gives every third letter an attempt, and every third two.
func (m *modelled) tried(t testing.TB) {
	t.Helper()
	for i := range m.letters {
		m.letters[i].Attempts = i % 3
		m.db.Exec(t, "UPDATE dead_letters SET attempts = $2 WHERE dead_letter_id = $1", m.letters[i].ID, i%3)
	}
}

func (m *modelled) chosen(f ledger.Filter) (chosen []ledger.Entry) {
	for _, e := range m.letters {
		if fits(f, e) {
			chosen = append(chosen, e)
		}
	}
	slices.SortFunc(chosen, func(a, b ledger.Entry) int {
		return cmp.Or(b.FailedAt.Compare(a.FailedAt), strings.Compare(b.ID, a.ID))
	})
	return chosen
}

// randomFilter asks for much and for little.
func randomFilter(random *rand.Rand) (f ledger.Filter) {
	one := func(in int) bool { return random.IntN(in) == 0 }
	if one(3) {
		f.Fingerprint = []string{"ABC0", "abc1", "abc10000", "abc0000000000002", "ffff"}[random.IntN(5)]
	}
	if one(4) {
		f.Kind = []envelope.Kind{envelope.Data, envelope.Conflict, envelope.Exhausted}[random.IntN(3)]
	}
	if one(4) {
		f.Code = []string{"23514", "22P02", "none"}[random.IntN(3)]
	}
	if one(3) {
		f.Path = []string{"a/b", "d", "none"}[random.IntN(3)]
	}
	for _, s := range ledger.States() {
		if one(4) {
			f.States = append(f.States, s)
		}
	}
	at := func() time.Time {
		return monday.Add(time.Duration(random.IntN(120)) * time.Hour).Add(time.Duration(random.IntN(3)) * time.Microsecond)
	}
	if one(3) {
		f.From = at()
	}
	if one(3) {
		if f.To = at(); !f.From.IsZero() && !f.From.Before(f.To) {
			f.To = f.From.Add(time.Duration(1+random.IntN(50)) * time.Hour)
		}
	}
	if one(5) {
		f.Topic = []string{"decision-logs", "other", "none"}[random.IntN(3)]
	}
	if one(4) {
		f.Partition = new(int32)
		*f.Partition = int32(random.IntN(4))
	}
	if one(5) {
		f.AttemptsBelow = 1 + random.IntN(2)
	}
	return f
}

func TestRead_ByFilter(t *testing.T) {
	t.Parallel()
	m := newModelled(t, 250, 7)
	m.tried(t)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 180 {
		switch i {
		case 60:
			m.few = 0
			m.ReadAtMost(0)
		case 120:
			if err := m.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f := randomFilter(random)
		chosen := m.chosen(f)
		m.seeList(t, f, chosen, 1+random.IntN(120))
		m.seeGroups(t, f, chosen)
		if i%50 == 0 {
			m.seeReport(t)
		}
	}
	m.seeGroups(t, ledger.Filter{}, m.chosen(ledger.Filter{}))
}

var ofTheDatabase = cmpopts.IgnoreFields(ledger.Entry{}, "ChangedAt")

func (m *modelled) seeList(t testing.TB, f ledger.Filter, want []ledger.Entry, limit int) {
	t.Helper()
	var got []ledger.Entry
	for page := (ledger.Page{Limit: limit}); ; {
		list, err := m.List(t.Context(), f, page)
		if err != nil || len(list.Entries) > limit || list.Next != "" && len(list.Entries) < limit {
			t.Fatalf("%+v: %d entries, %q, %v", f, len(list.Entries), list.Next, err)
		}
		got = append(got, list.Entries...)
		if page.After = list.Next; page.After == "" {
			break
		}
	}
	if diff := gocmp.Diff(want, got, ofTheDatabase, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v by %d\n-want +got:\n%s", f, limit, diff)
	}
	byID := map[string]bool{}
	for _, e := range want {
		byID[e.ID] = true
	}
	var ids []string
	err := m.Values(t.Context(), f, limit, 0, func(entries []ledger.Entry) error {
		for _, e := range entries {
			if ids = append(ids, e.ID); !byID[e.ID] || string(e.Value) != "v" || string(e.Key) != "k" {
				t.Errorf("%+v gives %+v", f, e)
			}
		}
		return nil
	})
	if err != nil || len(ids) != len(want) || !slices.IsSorted(ids) {
		t.Fatalf("%+v: %d values of %d, %v", f, len(ids), len(want), err)
	}
}

func (m *modelled) seeGroups(t testing.TB, f ledger.Filter, chosen []ledger.Entry) {
	t.Helper()
	want, paths, states := map[string]*ledger.Group{}, map[string]map[string]int64{}, map[ledger.State]int64{}
	for _, e := range chosen {
		g := want[e.Fingerprint]
		if g == nil {
			c := m.groups[e.Fingerprint]
			g = &ledger.Group{Fingerprint: e.Fingerprint, Kind: c.Kind, Code: c.Code, Table: c.Table, Column: c.Column, Constraint: c.Constraint, Message: c.Message,
				FirstSeen: m.first[e.Fingerprint], Counts: map[ledger.State]int64{}}
			want[e.Fingerprint], paths[e.Fingerprint] = g, map[string]int64{}
		}
		g.Counts[e.State]++
		states[e.State]++
		if e.Path != "" {
			paths[e.Fingerprint][e.Path]++
		}
		if e.State != ledger.Resolved && (g.Oldest.IsZero() || e.FirstFailedAt.Before(g.Oldest)) {
			g.Oldest = e.FirstFailedAt
		}
		if e.FailedAt.After(g.Newest) {
			g.Newest = e.FailedAt
		}
	}
	whole := m.wholePaths(f)
	var groups []ledger.Group
	for fp, g := range want {
		if whole != nil {
			paths[fp] = whole[fp]
		}
		for path := range paths[fp] {
			g.Paths = append(g.Paths, path)
		}
		slices.SortFunc(g.Paths, func(a, b string) int { return cmp.Or(cmp.Compare(paths[fp][b], paths[fp][a]), strings.Compare(a, b)) })
		g.Paths = g.Paths[:min(len(g.Paths), 5)]
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b ledger.Group) int {
		return cmp.Or(cmp.Compare(b.Open(), a.Open()), b.Newest.Compare(a.Newest), strings.Compare(a.Fingerprint, b.Fingerprint))
	})
	got, err := m.Groups(t.Context(), f)
	if diff := gocmp.Diff(groups, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Fatalf("%+v, %v\n-want +got:\n%s", f, err, diff)
	}
	counts, err := m.Counts(t.Context(), f)
	if diff := gocmp.Diff(states, counts); err != nil || diff != "" {
		t.Fatalf("%+v, %v\n-want +got:\n%s", f, err, diff)
	}
}

func (m *modelled) seeReport(t testing.TB) {
	t.Helper()
	type line struct {
		kind       envelope.Kind
		code, path string
	}
	want, found := map[line]*ledger.ReportLine{}, map[string]time.Time{}
	for _, e := range m.letters {
		if e.State == ledger.Resolved {
			continue
		}
		at := line{e.Cause.Kind, e.Cause.Code, e.Path}
		if want[at] == nil {
			want[at] = &ledger.ReportLine{Kind: at.kind, Code: at.code, Path: at.path, Counts: map[ledger.State]int64{}, Oldest: e.FirstFailedAt}
		}
		want[at].Counts[e.State]++
		if e.FirstFailedAt.Before(want[at].Oldest) {
			want[at].Oldest = e.FirstFailedAt
		}
		if was, ok := found[e.Found.Topic]; !ok || e.Found.Stamp.Before(was) {
			found[e.Found.Topic] = e.Found.Stamp
		}
	}
	got, err := m.Report(t.Context())
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d lines of %d, %v", len(got), len(want), err)
	}
	for _, l := range got {
		if diff := gocmp.Diff(want[line{l.Kind, l.Code, l.Path}], &l); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	oldest, err := m.OldestFound(t.Context())
	if diff := gocmp.Diff(found, oldest); err != nil || diff != "" {
		t.Fatalf("%v\n-want +got:\n%s", err, diff)
	}
}

func TestRead_BadPageOrFilter(t *testing.T) {
	t.Parallel()
	l := ledgerdb.New(open(t, "postgres://127.0.0.1:1/none", 0).DB)
	for _, after := range []string{"x", "!", "AAAA", "MQ", "enohIGFh", "enp6enp6enp6enp6IGFh", strings.Repeat("A", 1000)} {
		if _, err := l.List(t.Context(), ledger.Filter{}, ledger.Page{After: after}); !errors.Is(err, ledger.ErrBadPage) {
			t.Errorf("%q: %v", after, err)
		}
	}
	minus := int32(-1)
	for field, f := range map[string]ledger.Filter{
		"fingerprint": {Fingerprint: "abc"}, "kind": {Kind: "odd"}, "states": {States: []ledger.State{"DONE"}}, "path": {Path: "a\x00"},
		"code": {Code: "\xff"}, "to": {From: monday, To: monday}, "partition": {Partition: &minus},
	} {
		_, list := l.List(t.Context(), f, ledger.Page{})
		_, groups := l.Groups(t.Context(), f)
		_, counts := l.Counts(t.Context(), f)
		_, job := l.CreateJob(t.Context(), ledger.Job{Act: ledger.Retried, Filter: f, Operator: "ann", Reason: "so"})
		for _, err := range []error{list, groups, counts, job, l.Values(t.Context(), f, 1, 0, nil)} {
			var invalid *ledger.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
}
