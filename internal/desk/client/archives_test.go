package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/client"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
)

func answered(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(api.LevelHeader, "1")
	_ = json.NewEncoder(w).Encode(body) // the test sees an answer that is cut
}

// TestInventory_AllPages: the archives of all pages are joined, and what is missing is that of the first page.
func TestInventory_AllPages(t *testing.T) {
	t.Parallel()
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		list := api.ArchiveList{Where: "s3://archive", Archives: []api.Archive{{Name: "after " + after, Format: "parquet"}}}
		switch after {
		case "":
			list.Next, list.LeftUnknown, list.LeftOff, list.Alone = "b", "away", []string{"2026-02-20"}, []api.ArchiveAlone{{Name: "x", Files: 2, Unfinished: true}}
		case "b":
			list.Next = "c"
		}
		answered(w, list)
	})
	v, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Archives) != 3 || v.Archives[2].Name != "after c" || v.Archives[0].Format != archive.FormatParquet || v.LeftUnknown != "away" || len(v.LeftOff) != 1 || len(v.Alone) != 1 || !v.Alone[0].Unfinished {
		t.Errorf("%+v", v)
	}
}

// TestInventory_NoEndlessPages: a desk that answers with the same page again is given up.
func TestInventory_NoEndlessPages(t *testing.T) {
	t.Parallel()
	asked := 0
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		answered(w, api.ArchiveList{Archives: []api.Archive{{Name: "a"}}, Next: "a"})
	})
	if _, err := c.Inventory(t.Context()); err == nil || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	for _, list := range []api.ArchiveList{{LeftOff: []string{"yesterday"}}, {Absent: []api.AbsentArchives{{Day: "yesterday"}}}} {
		wrong := served(t, func(w http.ResponseWriter, _ *http.Request) { answered(w, list) })
		if _, err := wrong.Inventory(t.Context()); err == nil {
			t.Errorf("%+v is taken", list)
		}
	}
}

func TestForget_RefusedAndOlder(t *testing.T) {
	t.Parallel()
	day, err := archive.ParseDay("2026-08-01")
	if err != nil {
		t.Fatal(err)
	}
	code, hint := http.StatusConflict, "archive it"
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/whoami") {
			answered(w, api.Me{Name: "adam"})
			return
		}
		w.Header().Set(api.LevelHeader, "1")
		problem(w, api.Problem{Status: code, Detail: fmt.Sprint("answer ", code), Hint: hint})
	})
	var cannot *archive.CannotError
	if _, _, err := c.Book().Forget(t.Context(), day, ledger.Actor{Why: "r"}, false); !errors.As(err, &cannot) || cannot.Why != "answer 409" || cannot.Do != "archive it" {
		t.Errorf("%v", err)
	}
	var another *client.AnotherNameError
	if _, _, err := c.Book().Forget(t.Context(), day, ledger.Actor{Name: "mara", Why: "r"}, false); !errors.As(err, &another) {
		t.Errorf("%v", err)
	}
	if _, _, err := c.Book().ForgetLetters(t.Context(), day, ledger.Actor{Why: "r"}, false); !errors.As(err, &cannot) {
		t.Errorf("%v", err)
	}
	if _, _, err := c.Book().ForgetLetters(t.Context(), day, ledger.Actor{Name: "mara", Why: "r"}, false); !errors.As(err, &another) {
		t.Errorf("%v", err)
	}
	code = http.StatusNotFound
	if _, _, err := c.Book().Forget(t.Context(), day, ledger.Actor{Why: "r"}, false); err == nil || !strings.Contains(err.Error(), "does not have this question") {
		t.Errorf("%v", err)
	}
}

// A desk gives days page by page, and no page is left out.
func TestCalendar_AllPages(t *testing.T) {
	t.Parallel()
	var endless atomic.Bool
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		page := map[string]string{
			"":           `{"days":[{"day":"2026-11-03"},{"day":"2026-11-02"}],"next":"2026-11-02","shared":[{"day":"2026-10-31","bytes":9}],"lacks":["x"]}`,
			"2026-11-02": `{"days":[{"day":"2026-11-01"}],"shared":[{"day":"2026-10-31","bytes":9}],"lacks":["x"]}`,
		}
		if endless.Load() {
			page["2026-11-02"] = page[""]
		}
		_, _ = io.WriteString(w, page[r.URL.Query().Get("before")]) // the client is gone
	})
	found, err := c.Calendar(t.Context())
	var days []string
	for _, d := range found.Days {
		days = append(days, d.Day.String())
	}
	if err != nil || strings.Join(days, " ") != "2026-11-01 2026-11-02 2026-11-03" || len(found.Shared) != 1 || len(found.Lacks) != 1 {
		t.Errorf("%v, %+v, %v", days, found, err)
	}
	endless.Store(true)
	if _, err := c.Calendar(t.Context()); err == nil {
		t.Error("the same page again is taken")
	}
}
