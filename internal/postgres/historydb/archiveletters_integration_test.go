//go:build integration

package historydb_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

func TestLetters_StayUntilArchived(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	closed, stored, empty, open := pgtest.Letter(1, `{"a":1}`), pgtest.Letter(2, `{"a":2}`), pgtest.Letter(3, ""), pgtest.Letter(4, `{"a":4}`)
	empty.Value = nil
	d.Entered(closed, stored, empty, open)
	s := d.Put(stored.ID, 77)
	if err := d.Stored(t.Context(), []int64{s.ID}, []string{"row"}, ledger.Actor{Name: "ann", Why: "because"}); err != nil {
		t.Fatal(err)
	}
	d.Closed(closed, empty)
	waiting := func() int64 {
		t.Helper()
		n, err := d.Unarchived(t.Context(), time.Now().Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := waiting(); n != 1 {
		t.Fatalf("%d wait for an archive", n)
	}
	if n := d.Removed(); n != 2 || d.State(closed.ID) == "" {
		t.Fatalf("%d were removed", n)
	}
	var refused *pgconn.PgError
	if err := d.Tried(`DELETE FROM dead_letters WHERE state = 'RESOLVED'`); !errors.As(err, &refused) || refused.ConstraintName != "dead_letters_archived" || !strings.Contains(refused.Hint, "docket archive --dead-letters") {
		t.Fatalf("by hand: %v", err)
	}
	if err := d.Tried(`UPDATE dead_letters SET archived_in = 'x' WHERE dead_letter_id = '` + open.ID + `'`); !errors.As(err, &refused) || refused.ConstraintName != "dead_letters_moves" {
		t.Fatalf("an open one is archived by hand: %v", err)
	}

	c := d.Carrier(t.TempDir())
	days, err := c.Table.Days(t.Context(), archive.DayOf(time.Now()))
	if err != nil || len(days) != 1 || days[0] != (archive.LettersHeld{Day: pgtest.ClosedOn, Letters: 1, Bytes: 7}) {
		t.Fatalf("%+v, %v", days, err)
	}
	done, err := c.Archive(t.Context(), pgtest.ClosedOn)
	if err != nil || done.Letters != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if e, err := d.Show(t.Context(), closed.ID); err != nil || e.ArchivedIn != done.Archives[0] || e.ChangedBy != "ann" {
		t.Fatalf("%+v, %v", e, err)
	}
	if n := waiting(); n != 0 || d.Removed() != 1 {
		t.Fatalf("%d wait for an archive", n)
	}
	lines, _, err := d.History(t.Context(), closed.ID)
	var acts []string
	for _, l := range lines {
		acts = append(acts, fmt.Sprintf("%s %s %s", l.Act, l.By, l.Why))
	}
	want := []string{"entered desk-1 ", "closed ann because", "archived mara in " + done.Archives[0], "removed desk-1 "}
	if err != nil || len(acts) != len(want) {
		t.Fatalf("%q, %v", acts, err)
	}
	for i := range want {
		if !strings.HasPrefix(acts[i], want[i]) {
			t.Errorf("%q, want %q", acts[i], want[i])
		}
	}
	if time.Since(lines[2].At) > time.Hour {
		t.Errorf("archived at %s", lines[2].At)
	}
	d.Sums()
}

// lettersText is all of the ledger but how it was closed.
const lettersText = `SELECT coalesce(string_agg(concat_ws('|', to_jsonb(d) - '{group_id,changed_at,changed_by,changed_act,why,archived_in}'::text[], g.fingerprint, g.kind, g.code, g."table", g."column", g."constraint", g.message), E'\n' ORDER BY dead_letter_id), '')
	FROM dead_letters d JOIN dead_letter_groups g USING (group_id)`

func TestLetters_ComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	var letters []ledger.Letter
	for i, value := range []string{`{"a":1}`, "\x00\xff\\x41 \u2028\"", strings.Repeat("long ", 5000), "\n", "null"} {
		l := pgtest.Letter(int64(i), value)
		switch i {
		case 1:
			l.Key, l.Headers, l.Path, l.DecisionID, l.DecisionTime, l.Origin.Timestamp = nil, nil, "a\\\"\u202e/b", "", time.Time{}, time.Time{}
		case 2:
			l.Key, l.Origin.Index, l.Cause.Message, l.Cause.Code = []byte{}, -1, "another\tone", "22P02"
		}
		letters = append(letters, l)
	}
	d.Entered(letters...)
	d.Exec(t, pgtest.Unwatched+`UPDATE dead_letters SET edited = true, parent_id = '`+letters[0].ID+`', job_id = 4711 WHERE dead_letter_id = '`+letters[1].ID+`'`)
	d.Closed(letters...)
	before := d.Text(lettersText)
	shelf := filepath.Join(t.TempDir(), "shelf")
	c := d.Carrier(shelf)
	if done, err := c.Archive(t.Context(), pgtest.ClosedOn); err != nil || done.Letters != 5 || done.Files != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := d.Removed(); n != 5 || d.Text(lettersText) != "" {
		t.Fatalf("%d were removed", n)
	}
	back, err := c.Restore(t.Context(), pgtest.ClosedOn)
	if err != nil || back.Stored != 5 || d.Text(lettersText) != before {
		t.Fatalf("%+v, %v\n%s\n%s", back, err, before, d.Text(lettersText))
	}
	if again, err := c.Restore(t.Context(), pgtest.ClosedOn); err != nil || again.Stored != 0 || again.Equal != 5 || d.Text(lettersText) != before {
		t.Fatalf("again: %+v, %v", again, err)
	}
	if e, err := d.Show(t.Context(), letters[1].ID); err != nil || e.State != ledger.Resolved || e.ChangedBy != "mara" || e.Why != "from "+back.Archives[0] || time.Since(e.ChangedAt) > time.Hour || string(e.Value) != string(letters[1].Value) {
		t.Errorf("%+v, %v", e, err)
	}
	if n := d.Removed(); n != 0 {
		t.Errorf("%d of what was restored just now were removed", n)
	}
	if n, err := d.Unarchived(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("%d of what came from an archive wait for one, %v", n, err)
	}
	if n := d.Entered(letters...); n.New != 0 {
		t.Errorf("%+v entered again", n)
	}
	d.Sums()
	d.Exec(t, pgtest.Unwatched+`UPDATE dead_letters SET changed_at = changed_at - interval '2 hours'`)
	if n := d.Removed(); n != 5 {
		t.Errorf("%d of what was restored were removed", n)
	}

	drill := pgtest.NewLetters(t) // another database, that numbers its groups otherwise
	other := pgtest.Letter(99, "x")
	other.Cause.Message = "of another group"
	drill.Entered(other)
	drill.Closed(other)
	drill.Exec(t, `UPDATE dead_letters SET archived_in = 'somewhere'`)
	if n := drill.Removed(); n != 1 {
		t.Fatal(n)
	}
	back, err = drill.Carrier(shelf).Restore(t.Context(), pgtest.ClosedOn)
	if err != nil || back.Stored != 5 || drill.Text(lettersText) != before {
		t.Fatalf("elsewhere: %+v, %v\n%s\n%s", back, err, before, drill.Text(lettersText))
	}
	drill.Sums()
}

// TestLetters_ChangedMeanwhile: Postgres says of each letter whether the archive has it as it is.
func TestLetters_ChangedMeanwhile(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	a, b := pgtest.Letter(1, `{"a":1}`), pgtest.Letter(2, `{"a":2}`)
	d.Entered(a, b)
	d.Closed(a, b)
	c := d.Carrier(t.TempDir())
	c.Told = func(step archive.Step) {
		if step == archive.StepWritten {
			c.Told = nil
			d.Exec(t, `UPDATE dead_letters SET headers = '[]' WHERE dead_letter_id = $1`, b.ID)
		}
	}
	var cannot *archive.CannotError
	if _, err := c.Archive(t.Context(), pgtest.ClosedOn); !errors.As(err, &cannot) {
		t.Fatal(err)
	}
	if n := d.Removed(); n != 1 || d.State(b.ID) == "" {
		t.Fatalf("%d were removed", n)
	}
	if done, err := c.Archive(t.Context(), pgtest.ClosedOn); err != nil || done.Letters != 1 || done.Reused {
		t.Fatalf("%+v, %v", done, err)
	}
	d.Exec(t, `UPDATE dead_letters SET value = 'other' WHERE dead_letter_id = $1`, b.ID)
	back, err := c.Restore(t.Context(), pgtest.ClosedOn)
	if err != nil || back.Stored != 1 || back.Differs != 2 || !slices.Equal(back.Conflicts, []string{b.ID, b.ID}) { // of either archive
		t.Errorf("%+v, %v", back, err)
	}
}

// TestLetters_SharedAreFound: decisions that share a letter are found each by its id when an archive alone has the letter. So is one
// with a time that Postgres writes in another form.
func TestLetters_SharedAreFound(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	at := time.Date(2026, 1, 20, 10, 0, 0, 1000, time.UTC)
	shared, early := pgtest.Letter(1, "[\n1,2,3]"), pgtest.Letter(2, `{"a":2}`)
	shared.DecisionID, shared.DecisionTime, shared.Origin.Index, shared.Refused = "", time.Time{}, 1, 3
	shared.Held = []ledger.Held{{Place: 1, ID: "x", Time: at}, {Place: 3, ID: `"\y`}}
	early.DecisionID, early.DecisionTime = "z", time.Date(-7, 1, 1, 0, 0, 0, 0, time.UTC)
	d.Entered(shared, early)
	d.Closed(shared, early)
	c := d.Carrier(t.TempDir())
	if _, err := c.Archive(t.Context(), pgtest.ClosedOn); err != nil || d.Removed() != 2 {
		t.Fatal(err)
	}
	read, err := archive.FindLetters(t.Context(), c.Shelf, func(id string) bool { return id == "x" || id == `"\y` || id == "z" }, 1<<20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range read.Found {
		got[l.DecisionID] = fmt.Sprint(l.ID, l.Index, l.Time.Unix(), l.Offset)
	}
	none := time.Time{}.Unix()
	want := map[string]string{
		"x": fmt.Sprint(shared.ID, 1, at.Unix(), shared.Origin.Offset), `"\y`: fmt.Sprint(shared.ID, 3, none, shared.Origin.Offset),
		"z": fmt.Sprint(early.ID, early.Origin.Index, none, early.Origin.Offset),
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLetters_LinesAreWhole: a column that somebody adds to the ledger is archived, too, or is named here.
func TestLetters_LinesAreWhole(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	s, err := historydb.NewLetterArchives(open(t, d.URL, 0).DB).Open(t.Context(), pgtest.ClosedOn)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var names []string
	for _, c := range s.Columns() {
		names = append(names, c.Name)
	}
	not := []string{"state", "group_id", "owner", "lease_until", "archived_in"} // RESOLVED; its group is there whole; none where it is RESOLVED; where the line is
	for name := range strings.SplitSeq(d.Text(`SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'dead_letters'::regclass AND attnum > 0 AND NOT attisdropped`), " ") {
		if slices.Contains(names, name) == slices.Contains(not, name) {
			t.Errorf("column %s of the ledger is not in a line, or is without need", name)
		}
	}
	if _, err := historydb.NewLetterArchives(open(t, d.URL, 0).DB).Open(t.Context(), pgtest.ClosedOn); !errors.Is(err, archive.ErrBusy) {
		t.Errorf("the day is taken twice: %v", err)
	}
	var cannot *archive.CannotError
	if _, err := s.Load(t.Context(), "x", "mara", []archive.Column{{Name: "later", Type: "text"}}, nil); !errors.As(err, &cannot) || cannot.Hint() == "" {
		t.Errorf("a column of another release: %v", err)
	}
}
