package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/archive/columnar"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/archive/nightly"
)

const archiveName = "decision_logs-2026-02-25-001-3f9a2c-4f397d52"

func noInventory(context.Context) (*inventory.Inventory, error) { return &inventory.Inventory{}, nil }

func proveNothing(context.Context, string) error { return nil }

func forgetNoLetters(context.Context, archive.Day, ledger.Actor, bool) (archive.LettersForgotten, string, error) {
	return archive.LettersForgotten{}, "", nil
}

func forgetNothing(context.Context, archive.Day, ledger.Actor, bool) (*archive.Forgotten, string, error) {
	return nil, "", nil
}

// stock is an inventory with three archives, and something of each kind that can be missing.
func stock() *inventory.Inventory {
	day, _ := archive.ParseDay("2026-02-20")
	return &inventory.Inventory{
		Where: "s3://archive",
		Archives: []inventory.Archive{
			{Name: archiveName, Table: "decision_logs", Day: "2026-02-25", Format: archive.FormatLines, Rows: 7, Bytes: 70, Files: 1, Hash: "00", Superseded: true, CreatedAt: noon, CreatedBy: "mara"},
			{Name: "decision_logs-2026-02-25-002-3f9a2c-5f397d52", Table: "decision_logs", Day: "2026-02-25", Format: archive.FormatParquet, Rows: 8, Bytes: 80, Files: 2, Hash: "01", CreatedAt: noon, CreatedBy: "desk", Missing: []string{"a", "b"}},
			{Name: "dead_letters-2026-02-25-001-3f9a2c-6f397d52", Table: archive.LettersName, Day: "2026-02-25", Format: archive.FormatLines, Rows: 1, Bytes: 10, Files: 1, Hash: "02", CreatedAt: noon, CreatedBy: "desk"},
		},
		Broken: []*archive.BrokenError{{Archive: "decision_logs-2026-02-24-001-3f9a2c-00000000", Problem: "its manifest is not valid JSON, or incomplete"}},
		Absent: []*archive.AbsentError{{Day: day}, {Day: day.Next(), Archives: []string{"x"}}}, LeftUnknown: "left unknown",
		Alone: []inventory.Alone{{Archive: "decision_logs-2026-02-23-001-3f9a2c-00000000", Files: 3}}, LeftOff: []archive.Day{day}, LeftOffUnknown: "left off unknown",
		Nightly: inventory.Nightly{Wanted: true, Unknown: "note unknown", Note: &nightly.Note{State: nightly.Waiting, Why: "the hours", Hint: "wait", After: 90, Hours: "22:00-04:00", Holder: "desk-1", Due: 2, Oldest: "2026-02-20", Next: noon,
			Aged: 4, AgedAt: noon, Wrote: noon, Days: []nightly.Result{{Table: "decision_logs", Day: "2026-02-19", At: noon, Rows: 5, Bytes: 50, Dropped: true}, {Table: "decision_logs", Day: "2026-02-18", At: noon, Why: "busy", Hint: "wait", Waits: true}}}},
	}
}

func archivesOf(t *testing.T, w *world, query string) (list api.ArchiveList) {
	t.Helper()
	a := w.ask(t, "viewer", http.MethodGet, "/archives"+query, "")
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.code != http.StatusOK {
		t.Fatalf("%d, %v: %s", a.code, err, a.body)
	}
	return list
}

// TestArchives_Pages: each archive is on one page, in order, and what is missing is on the first page alone.
func TestArchives_Pages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var names []string
	for after, pages := "", 0; ; pages++ {
		list := archivesOf(t, w, "?limit=2"+after)
		for _, a := range list.Archives {
			names = append(names, a.Name)
		}
		first := pages == 0
		if list.Where != "s3://archive" || (list.Nightly != nil) != first || (len(list.Broken) == 1 && len(list.Absent) == 2 && len(list.Alone) == 1 && len(list.LeftOff) == 1 && list.LeftUnknown != "" && list.OffUnknown != "" && list.NoNote != "" && list.Wanted) != first {
			t.Errorf("page %d: %+v", pages, list)
		}
		if list.Next == "" {
			break
		}
		after = "&after=" + list.Next
	}
	var want []string
	for _, a := range stock().Archives {
		want = append(want, a.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	a := w.ask(t, "viewer", http.MethodGet, "/archives?after=gone", "")
	if p := a.problem(t); p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Hint, "list again from the start") {
		t.Errorf("%+v", p)
	}
}

// TestArchives_Bounded: neither lists of what is missing nor names of missing files make an answer long. The others are counted.
func TestArchives_Bounded(t *testing.T) {
	t.Parallel()
	v := stock()
	for i := range 5000 {
		v.Alone = append(v.Alone, inventory.Alone{Archive: fmt.Sprint("a", i), Files: 1})
	}
	many := make([]string, 6000)
	for i := range many {
		many[i] = fmt.Sprint("file", i)
	}
	v.Archives[0].Missing, v.Archives[1].Missing, v.More = many, many, 2
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Inventory = func(context.Context) (*inventory.Inventory, error) { return v, nil }
	})
	list := archivesOf(t, w, "")
	if len(list.Archives) != 1 || list.Next != archiveName || len(list.Archives[0].Missing) != 6000 || len(list.Alone) != 4000 || list.More != 1001+2 {
		t.Errorf("%d archives, next %s, %d alone, %d more", len(list.Archives), list.Next, len(list.Alone), list.More)
	}
	if list = archivesOf(t, w, "?after="+archiveName); len(list.Archives) != 2 || list.Next != "" || list.More != 0 {
		t.Errorf("%d archives, next %s, %d more", len(list.Archives), list.Next, list.More)
	}
}

// TestProve_SaysWhatIsWrong: a damaged archive is an answer. One that was not read is a problem, and two are not read at once.
func TestProve_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	name := "decision_logs-2026-02-25-001-3f9a2c-5f397d52"
	var result error
	var meanwhile func()
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Prove = func(_ context.Context, of string) error {
			if of != name {
				t.Errorf("read %s", of)
			}
			if meanwhile != nil {
				meanwhile()
			}
			return result
		}
	})
	path := "/archives/" + name + "/verify"
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{nil, http.StatusOK, `"whole":true}`},
		{&archive.BrokenError{Archive: name, Problem: "its rows do not match"}, http.StatusOK, `"whole":false,"problem":"archive ` + name + ` is broken: its rows do not match`},
		{&archive.LineError{}, http.StatusOK, `"hint":"raise DOCKET_MAX_RECORD_BYTES`},
		{&archive.SizeError{Limit: &columnar.LimitError{}}, http.StatusOK, `"hint":"raise DOCKET_MAX_RECORD_BYTES`},
		{archive.ErrNone, http.StatusConflict, "GET /api/v1/archives lists them"},
		{&archive.ShelfError{Err: errors.New("the bucket is away"), Do: "bring it back"}, http.StatusServiceUnavailable, "bring it back"},
		{&api.UnableError{Why: "the desk has no archive", Do: "set it"}, http.StatusConflict, "set it"},
	} {
		result = c.err
		if a := w.ask(t, "operator", http.MethodGet, path, ""); a.code != c.code || !strings.Contains(a.body, c.want) {
			t.Errorf("%v: %d: %s", c.err, a.code, a.body)
		}
	}
	result, meanwhile = nil, func() {
		for _, other := range []string{path, "/verify"} {
			if a := w.ask(t, "operator", http.MethodGet, other, ""); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "another verification runs") {
				t.Errorf("%s meanwhile: %d: %s", other, a.code, a.body)
			}
		}
	}
	if a := w.ask(t, "operator", http.MethodGet, path, ""); a.code != http.StatusOK {
		t.Errorf("%d: %s", a.code, a.body)
	}
}

// TestForget_NotesTheCaller: the note has the name of the token and one line of reason. A dry run needs no reason.
func TestForget_NotesTheCaller(t *testing.T) {
	t.Parallel()
	var asked []string
	var earlier *archive.Forgotten
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Forget = func(_ context.Context, day archive.Day, by ledger.Actor, dry bool) (*archive.Forgotten, string, error) {
			asked = append(asked, fmt.Sprint(day, " ", by.Name, " ", by.Why, " ", dry))
			return earlier, "s3://archive", nil
		}
		p.ForgetLetters = func(_ context.Context, day archive.Day, by ledger.Actor, dry bool) (archive.LettersForgotten, string, error) {
			asked = append(asked, fmt.Sprint("letters ", day, " ", by.Name, " ", by.Why, " ", dry))
			return archive.LettersForgotten{Archives: []string{"one"}, Earlier: earlier}, "s3://archive", nil
		}
	})
	forget := func(body string) api.ForgottenDay {
		t.Helper()
		var f api.ForgottenDay
		a := w.ask(t, "admin", http.MethodPost, "/archive/2026-02-25/forget", body)
		if err := json.Unmarshal([]byte(a.body), &f); err != nil || a.code != http.StatusOK || f.Where != "s3://archive" {
			t.Fatalf("%d, %v: %s", a.code, err, a.body)
		}
		return f
	}
	if f := forget(`{"dry_run":true}`); f.Result != "would be forgotten" || strings.Contains(w.log.String(), "forgotten") {
		t.Errorf("%+v\n%s", f, w.log)
	}
	if f := forget(`{"reason":"a\nyear"}`); f.Result != "forgotten" || !strings.Contains(w.log.String(), "day forgotten by API") || !strings.Contains(w.log.String(), `"operator":"adam"`) {
		t.Errorf("%+v\n%s", f, w.log)
	}
	earlier = &archive.Forgotten{At: noon, By: "mara", Reason: "over"}
	if f := forget(`{"reason":"r"}`); f.Result != "forgotten before" || f.By != "mara" || f.Reason != "over" || f.At == nil || strings.Count(w.log.String(), "day forgotten by API") != 1 {
		t.Errorf("%+v\n%s", f, w.log)
	}
	if len(asked) != 3 || !strings.HasSuffix(asked[0], "adam  true") || !strings.HasSuffix(asked[1], "adam a year false") {
		t.Errorf("%q", asked)
	}
	asked, earlier = asked[:2], nil
	if f := forget(`{"reason":"r","dead_letters":true}`); f.Result != "forgotten" || len(f.Archives) != 1 || asked[2] != "letters 2026-02-25 adam r false" || !strings.Contains(w.log.String(), `"archives":["one"]`) {
		t.Errorf("%+v, %q\n%s", f, asked, w.log)
	}
	for _, body := range []string{`{}`, `{"reason":" "}`, `{"reason":"\u0000"}`, `{"reason":"` + strings.Repeat("x", 1001) + `"}`} {
		if a := w.ask(t, "admin", http.MethodPost, "/archive/2026-02-25/forget", body); a.code != http.StatusUnprocessableEntity || len(asked) != 3 {
			t.Errorf("%s: %d, %q", body, a.code, asked)
		}
	}
	if a := w.ask(t, "admin", http.MethodPost, "/archive/2026-02-31/forget", `{"reason":"r"}`); a.code != http.StatusUnprocessableEntity || len(asked) != 3 {
		t.Errorf("%d", a.code)
	}
}

// TestArchives_Problems: an archive that cannot be asked has words and advice, and no text of a server.
func TestArchives_Problems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err        error
		code       int
		says, hint string
	}{
		{&api.UnableError{Why: "the desk has no archive", Do: "set DOCKET_ARCHIVE_TO"}, 409, "no archive", "DOCKET_ARCHIVE_TO"},
		{&archive.CannotError{Why: "2026-02-25 is still in the table", Do: "archive it"}, 409, "still in the table", "archive it"},
		{fmt.Errorf("open: %w", archive.ErrBusy), 409, "another docket process", "when that has ended"},
		{fmt.Errorf("look: %w", archive.ErrLeftUnread), 503, "not known which days left", "docket migrate"},
		{fmt.Errorf("look: %w", archive.ErrNotedUnread), 503, "not known which archives of dead letters", "desk-grants.sql"},
		{&archive.ShelfError{Err: errors.New("the directory does not exist"), Do: "mount it"}, 503, "the directory does not exist", "mount it"},
		{&archive.ShelfError{Err: errors.New("away")}, 503, "away", "DOCKET_ARCHIVE_TO"},
		{sqlError{"42501"}, 503, "does not own the table", "DOCKET_ARCHIVE_DATABASE_URL"},
		{sqlError{"XX000"}, 0, "", ""},
		{errors.New(marker), 500, "something went wrong", "log"},
	} {
		w := newWorld(t)
		w.book.err = c.err
		for _, a := range []answer{w.ask(t, "admin", http.MethodGet, "/archives", ""), w.ask(t, "admin", http.MethodPost, "/archive/2026-02-25/forget", `{"reason":"r"}`)} {
			p := a.problem(t)
			if c.code != 0 && p.Status != c.code || !strings.Contains(p.Detail, c.says) || !strings.Contains(p.Hint, c.hint) || strings.Contains(a.body, marker) {
				t.Errorf("%v: %s", c.err, a.body)
			}
		}
	}
}
