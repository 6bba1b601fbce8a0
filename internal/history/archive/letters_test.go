package archive_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
)

// book is a ledger of letters that were closed on one day.
type book struct {
	letters map[string]*closed
	note    error // of the next Note
	onRead  func()
	taken   bool
	needed  bool  // archives of the database
	lost    error // of the lock
	noted   []archive.Noted
	unread  error    // of the notes
	given   []string // archives that were forgotten, by a person for a reason
}

type closed struct{ value, in string }

func (b *book) line(id string) []byte {
	line, _ := json.Marshal(map[string]string{"dead_letter_id": id, "value": b.letters[id].value})
	return line
}

func (b *book) waiting() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(b.letters)) {
		if b.letters[id].in == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func (b *book) Days(context.Context, archive.Day) ([]archive.LettersHeld, error) { return nil, nil }

func (b *book) Open(context.Context, archive.Day) (archive.LettersSession, error) {
	if b.taken {
		return nil, archive.ErrBusy
	}
	b.taken = true
	return bookDay{b}, nil
}

type bookDay struct{ *book }

var bookColumns = []archive.Column{{Name: "dead_letter_id", Type: "text"}, {Name: "value", Type: "text"}}

func (d bookDay) Close()                    { d.taken = false }
func (d bookDay) Columns() []archive.Column { return bookColumns }
func (d bookDay) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "3f9a2c"}, d.lost
}
func (d bookDay) Waiting(context.Context) (int64, error) { return int64(len(d.waiting())), nil }

func (d bookDay) Read(_ context.Context, each func([]byte) error) error {
	for _, id := range d.waiting() {
		if err := each(d.line(id)); err != nil {
			return err
		}
	}
	if d.onRead != nil {
		d.onRead()
	}
	return nil
}

func idOf(line []byte) string {
	var l struct {
		ID string `json:"dead_letter_id"`
	}
	_ = json.Unmarshal(line, &l)
	return l.ID
}

func (d bookDay) Note(_ context.Context, name, _ string, lines [][]byte) (n int64, err error) {
	if err := d.note; err != nil {
		d.note = nil
		return 0, err
	}
	for _, line := range lines {
		id := idOf(line)
		if l := d.letters[id]; l != nil && l.in == "" && sha256.Sum256(d.line(id)) == sha256.Sum256(line) {
			l.in = name
			n++
		}
	}
	return n, nil
}

func (d bookDay) Noted(context.Context) ([]archive.Noted, error) {
	return d.noted, errors.Join(d.unread, d.lost)
}

func (d bookDay) Archived(context.Context) (bool, error) { return d.needed, nil }

func (d bookDay) Forget(_ context.Context, archives []string, by, reason string) error {
	d.given = append(d.given, fmt.Sprint(archives, " ", by, ": ", reason))
	return nil
}

func (d bookDay) Load(_ context.Context, name, _ string, _ []archive.Column, lines [][]byte) (l archive.LettersLoaded, err error) {
	for _, line := range lines {
		var letter struct{ Value string }
		if err := json.Unmarshal(line, &letter); err != nil {
			return l, err
		}
		id := idOf(line)
		switch have := d.letters[id]; {
		case id == "swallowed":
		case have == nil:
			d.letters[id] = &closed{letter.Value, name}
			l.Stored++
		case have.value == letter.Value:
			l.Equal++
		default:
			l.Differs++
			l.Conflicts = append(l.Conflicts, id)
		}
	}
	return l, nil
}

var lettersDay, _ = archive.ParseDay("2026-08-01")

func carrying(t *testing.T, ids ...string) (*archive.LettersCarrier, *book, string) {
	t.Helper()
	b := &book{letters: map[string]*closed{}}
	for _, id := range ids {
		b.letters[id] = &closed{value: "of " + id}
	}
	dir := t.TempDir()
	return &archive.LettersCarrier{Table: b, Shelf: archive.Dir(dir), By: "mara", Now: time.Now, PartRows: 2}, b, dir
}

func manifests(t *testing.T, c *archive.LettersCarrier) []*archive.Manifest {
	t.Helper()
	all, err := archive.Whole(t.Context(), c.Shelf, archive.LettersName, &lettersDay)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLetters_ThereAndBack(t *testing.T) {
	t.Parallel()
	c, b, _ := carrying(t, "a", "b", "c", "d", "e")
	done, err := c.Archive(t.Context(), lettersDay)
	if err != nil || done.Letters != 5 || done.Files != 3 || len(done.Archives) != 1 || done.Reused || len(b.waiting()) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if again, err := c.Archive(t.Context(), lettersDay); err != nil || again.Letters != 0 || len(again.Archives) != 0 || len(manifests(t, c)) != 1 {
		t.Fatalf("again: %+v, %v", again, err)
	}
	delete(b.letters, "a")
	delete(b.letters, "e") // the last of the last file
	b.letters["b"].value = "another"
	back, err := c.Restore(t.Context(), lettersDay)
	if err != nil || back.Lines != 5 || back.Stored != 2 || back.Equal != 2 || back.Differs != 1 || !slices.Equal(back.Conflicts, []string{"b"}) {
		t.Fatalf("%+v, %v", back, err)
	}
	if b.letters["e"].value != "of e" || b.letters["e"].in != done.Archives[0] || b.letters["b"].value != "another" || b.taken {
		t.Errorf("%+v, %+v, taken %v", b.letters["e"], b.letters["b"], b.taken)
	}
}

// TestLetters_DirectoryThatIsNotMounted: it is not made again while archives are needed.
func TestLetters_DirectoryThatIsNotMounted(t *testing.T) {
	t.Parallel()
	c, b, dir := carrying(t, "a", "b")
	c.Shelf, b.needed = archive.Dir(filepath.Join(dir, "archive")), true
	var refused *archive.CannotError
	if done, err := c.Archive(t.Context(), lettersDay); !errors.As(err, &refused) || done.Letters != 0 || len(b.waiting()) != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, _, err := c.Keep(t.Context(), lettersDay, func(each func([]byte) error) error { return each(b.line("a")) }); !errors.As(err, &refused) {
		t.Errorf("kept: %v", err)
	}
	b.needed = false
	if done, err := c.Archive(t.Context(), lettersDay); err != nil || done.Letters != 2 {
		t.Errorf("the first: %+v, %v", done, err)
	}
}

// TestLetters_KilledBeforeTheLedgerKnew: letters in the storage are not written a second time.
func TestLetters_KilledBeforeTheLedgerKnew(t *testing.T) {
	t.Parallel()
	c, b, _ := carrying(t, "a", "b")
	b.note = errors.New("killed")
	if _, err := c.Archive(t.Context(), lettersDay); err == nil || len(b.waiting()) != 2 || len(manifests(t, c)) != 1 {
		t.Fatalf("%v, %v", err, b.waiting())
	}
	b.letters["c"] = &closed{value: "closed since"}
	done, err := c.Archive(t.Context(), lettersDay)
	if err != nil || done.Letters != 3 || !done.Reused || len(done.Archives) != 2 || len(b.waiting()) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	all := manifests(t, c)
	if len(all) != 2 || all[0].Rows != 2 || all[1].Rows != 1 || b.letters["a"].in != all[0].Name() || b.letters["c"].in != all[1].Name() {
		t.Errorf("%+v", all)
	}
}

// TestLetters_ChangedMeanwhile: an archive with another version of a letter does not count for it.
func TestLetters_ChangedMeanwhile(t *testing.T) {
	t.Parallel()
	c, b, _ := carrying(t, "a", "b")
	b.onRead = func() { b.letters["b"].value, b.onRead = "changed by hand", nil }
	var cannot *archive.CannotError
	if _, err := c.Archive(t.Context(), lettersDay); !errors.As(err, &cannot) || b.letters["b"].in != "" || b.letters["a"].in == "" {
		t.Fatalf("%v, %+v", err, b.letters["b"])
	}
	done, err := c.Archive(t.Context(), lettersDay)
	if err != nil || done.Letters != 1 || len(manifests(t, c)) != 2 || b.letters["b"].in != manifests(t, c)[1].Name() {
		t.Fatalf("%+v, %v", done, err)
	}
}

// harmed is a storage that changes one file on reading.
type harmed struct {
	archive.Shelf
	how func(name string, b []byte) []byte
}

func (h *harmed) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := h.Shelf.Get(ctx, name)
	if err != nil || strings.HasSuffix(name, ".json") {
		return r, err
	}
	b, err := io.ReadAll(r)
	return io.NopCloser(strings.NewReader(string(h.how(name, b)))), errors.Join(err, r.Close())
}

// TestLetters_WhatIsNotReadBackIsNotArchived: the last file of an archive is damaged, so no letter of its files
// counts.
func TestLetters_WhatIsNotReadBackIsNotArchived(t *testing.T) {
	t.Parallel()
	var ids []string
	for n := range 2500 {
		ids = append(ids, fmt.Sprintf("a%04d", n))
	}
	c, b, _ := carrying(t, ids...)
	c.PartRows = 2200 // two portions of the first file are read before the second one is
	whole := c.Shelf
	c.Shelf = &harmed{whole, func(name string, b []byte) []byte {
		if strings.Contains(name, ".0002.") {
			b = slices.Clone(b)
			b[len(b)/2] ^= 1
		}
		return b
	}}
	var broken *archive.BrokenError
	if _, err := c.Archive(t.Context(), lettersDay); !errors.As(err, &broken) || len(b.waiting()) != 2500 {
		t.Fatalf("%v, %v", err, len(b.waiting()))
	}
	if _, err := c.Restore(t.Context(), lettersDay); !errors.As(err, &broken) {
		t.Fatalf("restored: %v", err)
	}
	// A broken archive is skipped, and all of it is archived again.
	c.Shelf = &harmed{whole, func(name string, b []byte) []byte {
		if strings.Contains(name, "-001-") {
			return b[:len(b)-1]
		}
		return b
	}}
	if done, err := c.Archive(t.Context(), lettersDay); err != nil || done.Letters != 2500 || done.Reused || !strings.Contains(done.Archives[0], "-002-") {
		t.Fatalf("%+v, %v", done, err)
	}
}

func TestLetters_Refusals(t *testing.T) {
	t.Parallel()
	c, b, _ := carrying(t, "swallowed", "b")
	var cannot *archive.CannotError
	if _, err := c.Archive(t.Context(), archive.DayOf(time.Now().AddDate(0, 0, -1))); !errors.As(err, &cannot) {
		t.Errorf("yesterday: %v", err)
	}
	if _, err := c.Restore(t.Context(), lettersDay); !errors.Is(err, archive.ErrNone) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := c.Archive(t.Context(), lettersDay); err != nil {
		t.Fatal(err)
	}
	clear(b.letters)
	if done, err := c.Restore(t.Context(), lettersDay); !errors.As(err, &cannot) || !strings.Contains(fmt.Sprint(err), "of 2 dead letters 1 are in the ledger") {
		t.Errorf("%+v, %v", done, err)
	}
	b.taken = true
	if _, err := c.Archive(t.Context(), lettersDay); !errors.Is(err, archive.ErrBusy) {
		t.Errorf("taken: %v", err)
	}
}

// TestLetters_Keep: letters that are in no ledger are in an archive once it was read back, and can be restored like
// others.
func TestLetters_Keep(t *testing.T) {
	t.Parallel()
	c, b, _ := carrying(t, "closed")
	lines := func(ids ...string) func(func([]byte) error) error {
		return func(each func([]byte) error) error {
			for _, id := range ids {
				if err := each(fmt.Appendf(nil, `{"dead_letter_id":%q,"value":"of %s"}`, id, id)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	name, n, err := c.Keep(t.Context(), lettersDay, lines("x", "y", "z"))
	if err != nil || n != 3 || len(manifests(t, c)) != 1 || manifests(t, c)[0].Name() != name || b.taken {
		t.Fatalf("%q, %d, %v, taken %v", name, n, err, b.taken)
	}
	if name, n, err := c.Keep(t.Context(), lettersDay, lines()); name != "" || n != 0 || err != nil || len(manifests(t, c)) != 1 {
		t.Errorf("of none: %q, %d, %v", name, n, err)
	}
	refused := errors.New("refused")
	if _, _, err := c.Keep(t.Context(), lettersDay, func(each func([]byte) error) error {
		return errors.Join(lines("v")(each), refused)
	}); !errors.Is(err, refused) || len(manifests(t, c)) != 1 {
		t.Errorf("%v", err)
	}
	if _, n, err := c.Keep(t.Context(), lettersDay, lines("x", "w")); n != 2 || err != nil || len(manifests(t, c)) != 2 {
		t.Errorf("killed before the ledger knew, and once more: %d, %v", n, err)
	}
	if done, err := c.Archive(t.Context(), lettersDay); err != nil || done.Letters != 1 || len(manifests(t, c)) != 3 {
		t.Errorf("what was closed on the day is archived as ever: %+v, %v", done, err)
	}
	delete(b.letters, "closed")
	if back, err := c.Restore(t.Context(), lettersDay); err != nil || back.Stored != 5 || back.Equal != 1 || b.letters["z"].value != "of z" {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestLetters_KeepLosesItsLock: letters that are kept are nowhere else. So a lock that is lost once they are read back is an error.
func TestLetters_KeepLosesItsLock(t *testing.T) {
	t.Parallel()
	c, b, _ := carrying(t)
	away := errors.New("away")
	c.Told = func(s archive.Step) {
		if s == archive.StepVerified {
			b.lost = away
		}
	}
	name, _, err := c.Keep(t.Context(), lettersDay, func(each func([]byte) error) error { return each([]byte(`{"dead_letter_id":"x","value":"y"}`)) })
	if name != "" || !errors.Is(err, away) {
		t.Errorf("%q, %v", name, err)
	}
}
