package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
)

func TestFormat_EveryList(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"logs", "stats", "state alice", "flips", "dlq list", "dlq groups", "dlq proposals", "dlq surplus --all", "jobs list", "report --no-horizon", "settings", "classify 23514"} {
		for _, role := range []string{"", "auditor"} {
			w := &world{book: jobbed(), store: decisions(5), states: statesKept()}
			if role != "" {
				w.overDesk(t, role)
			}
			r := w.call(append(strings.Fields(args), "-o", "json")...)
			var list struct {
				Items *[]map[string]any `json:"items"`
				Next  *string           `json:"next"`
			}
			if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != 0 || list.Items == nil || list.Next == nil {
				t.Errorf("%s: exit %d, %v\n%s%s", args, r.code, err, r.out, r.err)
				continue
			}
			lines := w.call(append(strings.Fields(args), "--output=jsonl")...)
			if n := strings.Count(lines.out, "\n"); n != len(*list.Items) {
				t.Errorf("%s: %d lines of %d", args, n, len(*list.Items))
			}
			ids := w.call(append([]string{"-oid"}, strings.Fields(args)...)...)
			if n := strings.Count(ids.out, "\n"); n != len(*list.Items) && ids.code == 0 {
				t.Errorf("%s: %d ids of %d\n%s%s", args, n, len(*list.Items), ids.out, ids.err)
			}
			for _, format := range []string{"yaml", "csv", "table", "wide"} {
				if r := w.call(append(strings.Fields(args), "-o", format)...); r.code != 0 || r.out == "" && len(*list.Items) > 0 {
					t.Errorf("%s as %s: exit %d, %q %s", args, format, r.code, r.out, r.err)
				}
			}
		}
	}
}

// TestFormat_TellsWhatIsCut: formats without a place for it say on the other channel that there is a next page.
func TestFormat_TellsWhatIsCut(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"logs -n 2 -o csv", "logs -n 2 -o id", "dlq list --limit 1 -o csv", "dlq list --limit 1 -o id", "dlq list --limit 1 -o jsonl"} {
		r := (&world{book: jobbed(), store: decisions(5)}).call(strings.Fields(args)...)
		next := "docket: next: "
		if strings.HasPrefix(args, "logs") {
			next = "next page: --after " // it writes while it reads
		}
		if r.code != 0 || !strings.Contains(r.err, next) {
			t.Errorf("%s: exit %d, %q", args, r.code, r.err)
		}
	}
}

// TestFormat_JSONStays: scripts that read --json find what they found before.
func TestFormat_JSONStays(t *testing.T) {
	t.Parallel()
	for args, member := range map[string]string{"dlq list": "entries", "logs": "decisions", "flips": "flips", "jobs list": "entries", "stats": "lines"} {
		r := (&world{book: jobbed(), store: decisions(5), states: statesKept()}).call(append(strings.Fields(args), "--json")...)
		var answer map[string]any
		if err := json.Unmarshal([]byte(r.out), &answer); err != nil || answer[member] == nil || answer["items"] != nil {
			t.Errorf("%s: %v\n%s", args, err, r.out)
		}
	}
}

func TestFormat_WrongUse(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"logs -o xml", "logs -o jsno", "logs -o json --json", "logs -o csv --lines", "logs -f -o yaml", "flips -f -o csv", "migrate -o json", "consume -o json", "desk -o yaml", "logs --color sometimes",
		"why x -o", "version -o",
	} {
		if r := (&world{}).call(strings.Fields(args)...); r.code != cli.Misuse || r.err == "" {
			t.Errorf("%s: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
}

// TestFormat_IDLikeAFlag: behind -- nothing is a flag.
func TestFormat_IDLikeAFlag(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"--json", "--lines", "-f", "--follow", "--watch"} {
		store := decisions(1)
		if err := store.AddRaw(fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q}`, id, now.Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
		if r := (&world{store: store}).call("why", "-o", "yaml", "--", id); r.code != cli.Done || !strings.Contains(r.out, id) {
			t.Errorf("%s: exit %d, %s%s", id, r.code, r.out, r.err)
		}
	}
}

func TestColor_Chosen(t *testing.T) {
	t.Parallel()
	for when, colours := range map[string]bool{"always": true, "never": false, "auto": false} {
		if r := (&world{}).call("dlq", "list", "--color", when); strings.Contains(r.out, "\x1b[") != colours {
			t.Errorf("%s: %q", when, r.out)
		}
	}
	if r := (&world{}).call("dlq", "list", "--color", "always", "-o", "csv"); strings.Contains(r.out, "\x1b[") {
		t.Errorf("%q", r.out)
	}
}

func TestPager_LongTexts(t *testing.T) {
	t.Parallel()
	id := deadLetters()[0].ID
	for name, c := range map[string]struct {
		args    string
		height  int
		environ []string
		fails   bool
		paged   string
	}{
		"long": {"dlq show " + id, 10, []string{"PAGER=more -s"}, false, "more -s"}, "by default": {"dlq show " + id, 10, nil, false, "less"}, "short": {"dlq show " + id, 500, nil, false, ""},
		"off": {"dlq show " + id + " --no-pager", 10, nil, false, ""}, "no pager": {"dlq show " + id, 10, []string{"PAGER="}, false, ""}, "cat": {"dlq show " + id, 10, []string{"PAGER=cat"}, false, ""},
		"no terminal": {"dlq show " + id, 0, nil, false, ""}, "as JSON": {"dlq show " + id + " -o json", 10, nil, false, ""}, "a list": {"dlq list", 3, nil, false, ""}, "broken": {"dlq show " + id, 10, nil, true, "less"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{terminal: term.Terminal{In: true, Out: true, Err: true, Width: 100, Height: c.height}, environ: c.environ}
			var argv, text string
			w.page = func(_ context.Context, words []string, shown []byte) error {
				argv, text = strings.Join(words, " "), string(shown)
				if c.fails {
					return errors.New("not there")
				}
				return nil
			}
			r := w.call(strings.Fields(c.args)...)
			if argv != c.paged || r.code != 0 || (r.out == "") != (c.paged != "" && !c.fails) || c.paged != "" && !strings.Contains(text, "What you can do now") {
				t.Errorf("exit %d, paged by %q\n%s%s", r.code, argv, r.out, r.err)
			}
		})
	}
}
