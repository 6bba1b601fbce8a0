//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
)

// of is a letter of a client.
func of(client string, offset int64) ledger.Letter {
	l := letter(offset, fmt.Sprint(client, offset))
	l.Client = client
	return l
}

func ofMany(client string, from, n int64) (all []ledger.Letter) {
	for i := range n {
		all = append(all, of(client, from+i))
	}
	return all
}

// bounded is a ledger whose clients bring so many letters in an hour, which passes when it is told to.
func bounded(t *testing.T, most int) (d *ledgerDB, nextHour func()) {
	t.Helper()
	d = newLedger(t)
	d.Bounded(most)
	at := noon.Truncate(time.Hour)
	d.Exec(t, hourSQL(at))
	return d, func() {
		at = at.Add(time.Hour)
		d.Exec(t, hourSQL(at))
	}
}

// ranges are all ranges, and what entered.
func (d *ledgerDB) ranges() string {
	return d.Text(`SELECT coalesce(string_agg(format('%s/%s %s: %s-%s from %s, %s letters, %s %s %s %s', topic, partition, client, first_offset - 1000, last_offset - 1000, next_offset - 1000, letters, entered, archived, lost, state), E'\n' ORDER BY surplus_id), '')
		FROM dead_letter_surplus`)
}

func (d *ledgerDB) letters() string { return d.Text(`SELECT count(*)::text FROM dead_letters`) }

// late reads a range again, up to the end, as the desk does: letters of other clients are not among those.
func (d *ledgerDB) late(id int64, anyway bool, letters ...ledger.Letter) (ledger.EnteredCount, ledger.Passed) {
	d.T.Helper()
	n, done, err := d.tryLate(id, anyway, letters...)
	if err != nil {
		d.T.Fatal(err)
	}
	return n, done
}

func (d *ledgerDB) tryLate(id int64, anyway bool, letters ...ledger.Letter) (ledger.EnteredCount, ledger.Passed, error) {
	d.T.Helper()
	all, err := d.Surplus(d.T.Context(), true, 0, 100)
	if err != nil {
		d.T.Fatal(err)
	}
	for i := range all {
		if s := &all[i]; s.ID == id {
			letters = slices.DeleteFunc(slices.Clone(letters), func(l ledger.Letter) bool {
				return l.Found.Offset < s.Next || l.Found.Offset > s.Last || !l.ClaimedBy(s.Client)
			})
			return d.EnterSurplus(d.T.Context(), ledger.Portion{ID: id, From: s.Next, To: s.Last + 1, Letters: letters, Anyway: anyway}, atMost, ann)
		}
	}
	d.T.Fatalf("no range %d", id)
	return ledger.EnteredCount{}, ledger.Passed{}, nil
}

func TestBounded_OneFloodsAndAnotherEnters(t *testing.T) {
	t.Parallel()
	d, nextHour := bounded(t, 3)
	flood := slices.Concat(ofMany("a", 1, 5), ofMany("b", 6, 2), ofMany("a", 8, 2), ofMany("", 10, 1))
	n := d.Entered(flood...)
	same(t, [3]int{n.New, n.Left, n.Known}, [3]int{6, 4, 0})
	same(t, d.ranges(), `decision-logs-dlq/1 a: 4-9 from 4, 4 letters, 0 0 0 open`)
	// Killed before the offset was committed, and by another desk once more.
	n = d.Entered(flood...)
	same(t, [3]int{n.New, n.Left, n.Known}, [3]int{0, 0, 10})
	same(t, d.ranges(), `decision-logs-dlq/1 a: 4-9 from 4, 4 letters, 0 0 0 open`)
	n = d.Entered(ofMany("a", 11, 2)...)
	same(t, n.Left, 2)
	same(t, d.ranges(), `decision-logs-dlq/1 a: 4-12 from 4, 6 letters, 0 0 0 open`)
	flood = append(flood, ofMany("a", 11, 2)...)
	if n, done := d.late(1, false, flood...); n.New != 0 || done.Next != 1004 {
		t.Fatalf("%+v, %+v: there was no room", n, done)
	}
	nextHour()
	if n, done := d.late(1, false, flood...); n.New != 3 || done.Next != 1009 || done.Lost != 0 {
		t.Fatalf("%+v, %+v", n, done)
	}
	n = d.Entered(ofMany("a", 13, 1)...) // older letters took the room
	same(t, n.Left, 1)
	if n, done := d.late(1, true, flood...); n.New != 3 || done.Next != 1013 || done.Lost != 0 {
		t.Fatalf("%+v, %+v", n, done)
	}
	same(t, d.ranges(), "decision-logs-dlq/1 a: 4-12 from 13, 6 letters, 6 0 0 entered\ndecision-logs-dlq/1 a: 13-13 from 13, 1 letters, 0 0 0 open")
	same(t, d.letters(), "12")
	if _, _, err := d.tryLate(1, true, flood...); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("a range that has ended: %v", err)
	}
	sums, err := d.SurplusSums(t.Context())
	if err != nil || sums.Letters[ledger.SurplusOpen] != 1 || sums.Letters[ledger.SurplusEntered] != 6 || sums.Oldest.IsZero() {
		t.Errorf("%+v, %v", sums, err)
	}
	d.Sums()
}

// A record that was written twice, as after a publish that nobody answered, is one letter at two places: none of the two is lost.
func TestBounded_TwoCopies(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	twin := of("a", 2)
	twin.Found.Offset = 1007
	far := twin
	far.Found.Offset = 1009
	n := d.Entered(of("a", 1), of("a", 2), twin)
	same(t, [3]int{n.New, n.Left, n.Known}, [3]int{1, 2, 0})
	n = d.Entered(far)
	same(t, n.Left, 1)
	same(t, d.ranges(), `decision-logs-dlq/1 a: 2-9 from 2, 3 letters, 0 0 0 open`)
	if n, done := d.late(1, true, of("a", 2), twin, far); n.New != 1 || n.Known != 2 || done.Lost != 0 {
		t.Fatalf("%+v, %+v", n, done)
	}
	same(t, d.ranges(), `decision-logs-dlq/1 a: 2-9 from 10, 3 letters, 3 0 0 entered`)
}

// Records that are dead again, and parts of them, enter whatever their client brought: states depend on them.
func TestBounded_RetriesEnter(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	whole := letter(1, `[{"decision_id":"a","timestamp":"2024-05-01T12:00:00Z"},{"decision_id":"b","timestamp":"2024-05-01T12:00:00Z"}]`)
	d.Entered(whole)
	s := d.Put(whole.ID, 500)
	child := part(s, 500, 1, `{"decision_id":"b","timestamp":"2024-05-01T12:00:00Z"}`)
	stranger := letter(600, "600")
	stranger.RetryOf = s.Mark // made up: its value is another
	n := d.Entered(child, stranger)
	same(t, [2]int{n.New, n.Left}, [2]int{1, 1})
	if n := d.Entered(home(s, 501)); n.DeadAgain != 1 || n.Left != 0 {
		t.Fatalf("%+v", n)
	}
	same(t, d.Text(`SELECT entered::text FROM dead_letter_growth`), "1")
	d.Sums()
}

// The end of a retry that was read before its place was known is found when it is read again. It is not counted as lost.
func TestBounded_LateEndOfARetry(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("x", 1)[0]
	end := home(s, 500)
	end.RetryOf = ""
	if n := d.Entered(end); n.Left != 1 {
		t.Fatalf("%+v", n)
	}
	d.Placed("x", ledger.Placed{SendingID: s.ID, Partition: end.Origin.Partition, Offset: end.Origin.Offset})
	if n, done := d.late(1, false, end); n.DeadAgain != 1 || done.Lost != 0 {
		t.Fatalf("%+v, %+v", n, done)
	}
	same(t, d.ranges(), `decision-logs-dlq/1 : 500-500 from 501, 1 letters, 1 0 0 entered`)
}

func TestBounded_RemovedStaysOut(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	l := of("a", 1)
	l.Value = nil // nothing to keep
	l.ID = letter(1, "").ID
	d.Entered(l)
	d.Closed(l)
	if n := d.Removed(); n != 1 {
		t.Fatal(n)
	}
	if n := d.Entered(l, of("a", 2)); n.Known != 1 || n.Left != 1 {
		t.Fatalf("%+v", n)
	}
}

func TestBounded_LostAndArchived(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	d.Entered(ofMany("a", 1, 6)...)
	if _, done := d.late(1, true, ofMany("a", 4, 3)...); done.Lost != 2 {
		t.Fatalf("%+v", done)
	}
	same(t, d.ranges(), `decision-logs-dlq/1 a: 2-6 from 7, 5 letters, 3 0 2 lost`)
	// A letter that was thought to be lost and is there after all enters, or is in a range, as any other.
	if n := d.Entered(of("a", 2)); n.Left != 1 {
		t.Fatalf("%+v", n)
	}
	d.Entered(ofMany("b", 21, 4)...)
	lost, err := d.ArchivedSurplus(t.Context(), 3, 1022, 1024, "shelf", 2)
	if err != nil || lost != 1 {
		t.Fatal(lost, err)
	}
	if n := d.Entered(ofMany("b", 22, 3)...); n.Known != 3 {
		t.Fatalf("%+v: the archive has them", n)
	}
	if _, err := d.ArchivedSurplus(t.Context(), 2, 1002, 1003, "shelf", 2); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("another range than was archived: %v", err)
	}
	sums, err := d.SurplusSums(t.Context())
	if err != nil || sums.Letters[ledger.SurplusLost] != 3 || sums.Letters[ledger.SurplusArchived] != 2 {
		t.Errorf("%+v, %v", sums, err)
	}
	d.Exec(t, `UPDATE dead_letter_surplus SET closed_at = closed_at - interval '2 days' WHERE state = 'lost'`)
	if sums, err = d.SurplusSums(t.Context()); err != nil || sums.Letters[ledger.SurplusLost] != 1 {
		t.Errorf("of the last day: %+v, %v", sums, err)
	}
}

func TestBounded_Order(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	d.Entered(ofMany("a", 1, 3)...)
	if err := d.OrderSurplus(t.Context(), 1, ledger.Actor{Name: "mara", Why: "now"}); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]int64{"a second time": 1, "nowhere": 7} {
		if err := d.OrderSurplus(t.Context(), id, ledger.Actor{Name: "bob", Why: "me too"}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.OrderSurplus(t.Context(), 1, ledger.Actor{Name: "bob"}); err == nil {
		t.Error("without a reason")
	}
	same(t, d.Text(`SELECT concat_ws(' ', ordered_by, ordered_why, ordered_login = session_user, ordered_at IS NOT NULL) FROM dead_letter_surplus`), "mara now t t")
	all, err := d.Surplus(t.Context(), false, 0, 10)
	if err != nil || len(all) != 1 || all[0].OrderedBy != "mara" || all[0].Growth != 1 || all[0].Open() != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestSurplus_Pages: each page continues after the last range of the one before.
func TestSurplus_Pages(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 1)
	for i, client := range []string{"a", "b", "c", "e"} {
		d.Entered(ofMany(client, 1+2*int64(i), 2)...)
	}
	d.Exec(t, `UPDATE dead_letter_surplus SET state = 'lost', closed_at = now(), next_offset = last_offset + 1, lost = letters WHERE surplus_id = 2`)
	for _, c := range []struct {
		all   bool
		after int64
		n     int
		want  []int64
	}{
		{false, 0, 2, []int64{1, 3}}, {false, 3, 2, []int64{4}}, {false, 2, 1, []int64{3}}, {false, 4, 2, nil},
		{true, 0, 3, []int64{4, 3, 2}}, {true, 2, 3, []int64{1}}, {true, 1, 3, nil},
	} {
		page, err := d.Surplus(t.Context(), c.all, c.after, c.n)
		var got []int64
		for i := range page {
			got = append(got, page[i].ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// Several desks that read the same partition at once, as around a rebalance, and others: together they take no more than there is room for, and no
// letter is left twice.
func TestBounded_ManyDesks(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 7)
	desks := d.desks(4)
	for _, l := range desks {
		l.Bounded(7)
	}
	for round := range int64(20) {
		var all [4]ledger.EnteredCount
		together(4, func(i int) {
			batch := ofMany("a", round*100, 5)
			if i > 1 {
				batch = ofMany("b", round*100+50, 5)
			}
			n, err := desks[i].Enter(context.Background(), batch, atMost, ann)
			if err != nil {
				t.Error(err)
			}
			all[i] = n
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	same(t, d.Text(`SELECT string_agg(n, ' ' ORDER BY n) FROM (SELECT (regexp_match(convert_from(value, 'UTF8'), '^.'))[1] || count(*) AS n FROM dead_letters GROUP BY (regexp_match(convert_from(value, 'UTF8'), '^.'))[1]) c`), "a7 b7")
	same(t, d.Text(`SELECT string_agg(client || letters, ' ' ORDER BY client) FROM dead_letter_surplus`), "a93 b93")
	d.sound()
	d.Sums()
}

func TestBounded_Trim(t *testing.T) {
	t.Parallel()
	d, nextHour := bounded(t, 1)
	d.Entered(ofMany("a", 1, 3)...)
	for range 49 {
		nextHour()
	}
	d.Entered(ofMany("b", 11, 3)...)
	d.late(1, true, ofMany("a", 1, 3)...)
	if err := d.TrimSurplus(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, d.Text(`SELECT string_agg(client, ' ' ORDER BY client) FROM dead_letter_growth`), "a b") // a range of it was entered in this hour
	d.Exec(t, `UPDATE dead_letter_surplus SET closed_at = closed_at - interval '31 days' WHERE state = 'entered'`)
	for range 49 {
		nextHour()
	}
	if err := d.TrimSurplus(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, d.Text(`SELECT (SELECT count(*) FROM dead_letter_growth) || ' ' || (SELECT string_agg(client, ' ') FROM dead_letter_surplus)`), "0 b")
}

// A role that could work with the ledger before the tables came can work with them.
func TestBounded_MigrationGrants(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	text, err := migrations.FS.ReadFile("00015_growth.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	d.Exec(t, down)
	desk, reader := d.Role(t, ""), d.Role(t, "")
	name := func(url string) string { return strings.SplitN(strings.TrimPrefix(url, "postgres://"), ":", 2)[0] }
	d.Exec(t, `GRANT SELECT, INSERT, UPDATE ON dead_letters, dead_letter_groups, dead_letter_outbox, dead_letter_decisions TO `+name(desk)+`; GRANT SELECT ON dead_letter_audit TO `+name(desk)+`;
		GRANT SELECT ON dead_letters TO `+name(reader))
	d.Exec(t, up)
	l := ledgerdb.New(open(t, desk, 0).DB).Bounded(1)
	if n, err := l.Enter(t.Context(), ofMany("a", 1, 3), atMost, ann); err != nil || n.Left != 2 {
		t.Fatal(n, err)
	}
	r := ledgerdb.New(open(t, reader, 0).DB)
	if all, err := r.Surplus(t.Context(), true, 0, 10); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := r.TrimSurplus(t.Context()); err == nil {
		t.Error("a reader may change it")
	}
}

// A desk of the release before knows no cap: it enters what it reads, and a range is entered by the next desk that knows it.
func TestBounded_FormerDesk(t *testing.T) {
	t.Parallel()
	d, nextHour := bounded(t, 1)
	d.Entered(ofMany("a", 1, 4)...)
	former := ledgerdb.New(open(t, d.URL, 0).DB) // it calls none of the functions
	if n, err := former.Enter(t.Context(), ofMany("a", 3, 4), atMost, ann); err != nil || n.New != 4 || n.Left != 0 {
		t.Fatal(n, err)
	}
	nextHour()
	if n, done := d.late(1, false, ofMany("a", 1, 4)...); n.New != 1 || n.Known != 2 || done.Lost != 0 {
		t.Fatalf("%+v, %+v", n, done)
	}
	same(t, d.ranges(), `decision-logs-dlq/1 a: 2-4 from 5, 3 letters, 3 0 0 entered`)
	d.Sums()
}

// A letter that never was in the ledger is archived in the form of one that was. It comes back RESOLVED, with all that it would have had.
func TestBounded_ArchivedComesBack(t *testing.T) {
	t.Parallel()
	d, _ := bounded(t, 0)
	rest := resting(3, "[\n1,2,3]", ledger.Held{Place: 3, ID: `a"\,{b}`, Time: time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)}, ledger.Held{Place: 1, ID: "NULL"},
		ledger.Held{Place: 2, ID: "early", Time: time.Date(0, 2, 29, 1, 2, 3, 4000, time.UTC)})
	rest.Client = "edge"
	bare := letter(4, "")
	bare.Key, bare.Value, bare.Headers, bare.DecisionID, bare.DecisionTime, bare.Path = nil, nil, nil, "", time.Time{}, ""
	bare.Origin.Partition, bare.Origin.Offset, bare.Origin.Index = envelope.NoPlace, envelope.NoPlace, envelope.NoIndex
	bare.ID = envelope.ID(bare.Origin, nil)
	letters := []ledger.Letter{of("edge", 1), of("edge", 2), rest, bare}
	const row = `SELECT string_agg((to_jsonb(r) - 'group_id')::text, E'\n' ORDER BY dead_letter_id) FROM (SELECT d.*, g.fingerprint, g.kind, g.code, g."table", g."column", g."constraint", g.message AS group_message,
		h.refused, h.places, h.decision_ids, h.decision_ts AS times, h.hashes
		FROM dead_letters d JOIN dead_letter_groups g USING (group_id) LEFT JOIN dead_letter_decisions h USING (dead_letter_id)) r`
	const unlike = `UPDATE dead_letters SET state = 'PENDING', changed_at = '2020-01-01', changed_act = 'entered', changed_by = 'x', why = 'x', seen_at = '2020-01-01', archived_in = NULL`
	wipe := pgtest.Unwatched + `TRUNCATE dead_letters, dead_letter_cases, dead_letter_rule_acts, dead_letter_proposals, dead_letter_decisions, dead_letter_audit, dead_letter_groups RESTART IDENTITY`
	d.Entered(letters...)
	d.Exec(t, pgtest.Unwatched+unlike)
	want := d.Text(row)
	d.Exec(t, wipe)

	lines, err := d.Lines(t.Context(), append(letters, letters[0]), ann)
	if err != nil || len(lines) != len(letters) {
		t.Fatal(len(lines), err)
	}
	c := d.Carrier(filepath.Join(t.TempDir(), "shelf"))
	name, n, err := c.Keep(t.Context(), pgtest.ClosedOn, func(each func([]byte) error) error {
		for _, line := range lines {
			if err := each(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || n != int64(len(letters)) {
		t.Fatal(name, n, err)
	}
	if done, err := c.Restore(t.Context(), pgtest.ClosedOn); err != nil || done.Stored != n {
		t.Fatalf("%+v, %v", done, err)
	}
	same(t, d.Text(`SELECT string_agg(DISTINCT concat_ws(' ', state, changed_act, archived_in), ' ') FROM dead_letters`), "RESOLVED restored "+name)
	if found, err := d.Claims(t.Context(), "NULL", 2); err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	d.Exec(t, pgtest.Unwatched+unlike)
	same(t, d.Text(row), want)
}

// The offsets of a topic that was made again mean other records: an archive of before has none of them.
func TestBounded_TopicMadeAgain(t *testing.T) {
	t.Parallel()
	d, nextHour := bounded(t, 1)
	d.Entered(ofMany("a", 1, 4)...)
	if _, err := d.ArchivedSurplus(t.Context(), 1, 1002, 1004, "shelf", 3); err != nil {
		t.Fatal(err)
	}
	nextHour()
	if n := d.Entered(ofMany("a", 2, 3)...); n.Known != 3 {
		t.Fatalf("%+v: the archive has them", n)
	}
	other := letter(3, "another")
	other.Client, other.Found.Stamp = "a", other.Found.Stamp.Add(time.Hour)
	if n := d.Entered(other); n.New != 1 {
		t.Fatalf("%+v: nothing has it", n)
	}
}
