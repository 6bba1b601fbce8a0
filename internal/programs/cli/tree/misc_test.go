package tree

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/programs/cli/term"
)

func TestPrograms_SameCommands(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"classify 23514 too_large": {0, "check_violation"}, "classify nonsense": {1, "neither a SQLSTATE"}, "version": {0, "docket "}, "--version": {0, "docket "},
		"classify 23514 --json": {0, `"when": "without one"`}, "--json classify --wide empty": {0, `"name": "empty_record"`}, "classify nonsense --json": {1, `"known": false`},
		"version --json": {0, `"program": "docket"`}, "--json where-is": {2, "give one record"}, "settings --json": {0, `"name": "DOCKET_DESK_LEASE"`},
		"verify --help": {0, "docket verify [flags]"}, "help where-is": {0, "docket where-is RECORD [flags]"}, "where-is": {2, "give one record"},
		"verify --sincee 1h": {2, "did you mean --since?"}, "check --jsno": {2, "did you mean --json?"}, "settings": {0, "DOCKET_DESK_LEASE"},
		"desk --once x": {7, "desk --once x"}, "desk --help": {7, "desk --help"}, "completion zsh": {0, "#compdef docket"}, "completion fish": {0, "complete -c docket"},
	} {
		r := (&world{}).call(strings.Fields(args)...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.says) {
			t.Errorf("%s: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
}

func TestCompletion_ValidBash(t *testing.T) {
	t.Parallel()
	r := (&world{}).call("completion", "bash")
	if r.code != 0 || !strings.Contains(r.out, "__start_docket") {
		t.Fatalf("exit %d, %s", r.code, r.err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Log("there is no bash here")
		return
	}
	script := filepath.Join(t.TempDir(), "docket.bash")
	if err := os.WriteFile(script, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), bash, "-n", script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCompletion_Ledger: a shell completes from the ledger, and gets nothing where the ledger does not answer.
func TestCompletion_Ledger(t *testing.T) {
	t.Parallel()
	fingerprint := deadLetters()[0].Fingerprint
	for args, want := range map[string]string{
		"dlq show a0": "a00000000000\tPENDING 23514 authz/allow", "dlq list --code 23": "23514", "dlq list --fingerprint " + fingerprint[:5]: fingerprint + "\t7 open, 23514 decision_logs_path_short",
		"dlq list --state fa": "FAILED", "dlq groups --kind d": "decode", "dlq retry --path authz": "authz/allow", "jobs stop 2": "2\tSTOPPED retry", "dlq list --topic dec": "decision-logs",
		"classify 2351": "23514\tcheck_violation", "dlq re": "resolve\t", "dlq retry --operat": "--operator\tname of who decides", "dlq retry a0": "a00000000000\tPENDING", "completion b": "bash", "dlq show " + deadLetters()[9].ID[:20]: deadLetters()[9].ID[:20] + "\tRESOLVED",
	} {
		for _, away := range []bool{false, true} {
			w := &world{book: jobbed()}
			if away {
				w.book.fails = errAway
			}
			r := w.call(append([]string{"__complete"}, strings.Fields(args)...)...)
			static := strings.Contains("--state --kind --topic classify re retry completion", strings.Fields(args)[len(strings.Fields(args))-2]) || args == "dlq re"
			if has := strings.Contains("\n"+r.out, "\n"+want); has == away && !static || r.code != 0 || r.err != "" {
				t.Errorf("%s, away %v: exit %d\n%s%s", args, away, r.code, r.out, r.err)
			}
			quiet(t, strings.ReplaceAll(r.out, "\t", ""))
		}
	}
	w := &world{environ: []string{"DOCKET_DATABASE_URL="}}
	if r := w.call("__complete", "dlq", "show", "a0"); r.code != 0 || r.err != "" || strings.Contains(r.out, "a0") {
		t.Errorf("without a URL: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// TestList_LongInParts: three pages, one JSON, each dead letter once.
func TestList_LongInParts(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(many(2345)...)}
	r := w.call("dlq", "list", "--all", "--json")
	var list struct {
		Entries []struct{ ID string }
		Next    string
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list.Entries) != 2345 || list.Next != "" {
		t.Fatalf("exit %d, %v, %d entries", r.code, err, len(list.Entries))
	}
	seen := map[string]bool{}
	for _, e := range list.Entries {
		seen[e.ID] = true
	}
	if len(seen) != 2345 {
		t.Errorf("%d of them", len(seen))
	}
	r = w.call("dlq", "list", "--limit", "1500")
	if n := strings.Count(r.out, "\n"); n != 1501 || strings.Count(r.out, "STATE") != 1 || !strings.Contains(r.err, "1,500 shown; next page: --after ") {
		t.Errorf("%d lines, %s", n, r.err)
	}
	r = w.call("dlq", "list", "--json", "--code", "none")
	var none map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.out), &none); err != nil || len(none) != 3 || strings.Join(strings.Fields(string(none["entries"])), "") != "[]" || string(none["next"]) != `""` {
		t.Errorf("%v, %s", err, r.out)
	}
}

// TestShow_RawNotOnTerminal: bytes as they are go to a pipe only.
func TestShow_RawNotOnTerminal(t *testing.T) {
	t.Parallel()
	bad := deadLetters()[7]
	if r := (&world{}).call("dlq", "show", bad.ID, "--raw"); r.code != 0 || !bytes.Equal([]byte(r.out), bad.Value) {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
	if r := (&world{terminal: person(80)}).call("dlq", "show", bad.ID, "--raw"); r.code != 2 || r.out != "" {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
}

func TestColours_OnlyOnTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at      term.Terminal
		environ []string
		want    bool
	}{
		"a terminal": {person(100), []string{"NO_COLOR="}, true}, "NO_COLOR": {person(100), nil, false}, "a dumb one": {person(100), []string{"NO_COLOR=", "TERM=dumb"}, false},
		"a pipe": {term.Terminal{}, []string{"NO_COLOR="}, false},
	} {
		for _, args := range [][]string{{"dlq", "list"}, {"dlq", "show", deadLetters()[0].ID}, {"jobs", "show", "1"}} {
			r := (&world{book: jobbed(), terminal: c.at, environ: c.environ}).call(args...)
			if got := strings.Contains(r.out, "\x1b[3"); got != c.want {
				t.Errorf("%s, %v: %v\n%s", name, args, got, r.out)
			}
		}
	}
}
