package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"docket/internal/history/reader"
	"docket/internal/programs/cli/term"
	"docket/internal/testkit/readertest"
)

// TestLogs_Golden holds every view of them against what it was.
func TestLogs_Golden(t *testing.T) {
	t.Parallel()
	first := readertest.Decisions(12, now)
	for name, args := range map[string][]string{
		"logs":          {"logs"},
		"logs_filtered": {"logs", "--denied", "--verdict", "error,other", "--since", "1h", "--until", "2026-11-21T20:14:00Z", "-n", "2"},
		"logs_none":     {"logs", "--path", "no/such"},
		"logs_oldest":   {"logs", "--oldest", "--service", "checkout", "-n", "3"},
		"logs_full":     {"logs", "--full", "-n", "2"},
		"logs_one":      {"logs", first[6].ID},
		"logs_one_full": {"logs", first[6].ID, "--full"},
		"logs_bare":     {"logs", first[3].ID},
		"logs_lines":    {"logs", "--lines", "-n", "2"},
		"stats":         {"stats", "--since", "30m"},
		"stats_service": {"stats", "--by", "service", "--steps", "--since", "30m", "--until", "3m", "--step", "5m"},
		"stats_days":    {"stats", "--since", "7d", "-n", "1", "--path", "http/*", "--path", "cloud_access/device_posture/response"},
		"stats_none":    {"stats", "--service", "none"},
	} {
		for how, c := range map[string]struct {
			terminal term.Terminal
			args     []string
			width    int
		}{
			"80": {person(80), nil, 80}, "140": {person(140), nil, 140}, "pipe": {term.Terminal{}, nil, 0}, "json": {term.Terminal{}, []string{"--json"}, 0},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := &world{store: decisions(12), terminal: c.terminal}
				r := w.call(append(args, c.args...)...)
				if r.code != 0 {
					t.Fatalf("exit %d, %s", r.code, r.err)
				}
				quiet(t, r.out+r.err)
				full := strings.Contains(strings.Join(args, " "), "--full")
				if strings.Contains(r.out+r.err, readertest.Secret) != full {
					t.Error("a payload is shown where it was not asked for, or not where it was")
				}
				if how == "json" && name != "logs_lines" && !json.Valid([]byte(r.out)) {
					t.Error("that is no JSON")
				}
				for line := range strings.SplitSeq(r.out, "\n") {
					if n := utf8.RuneCountInString(line); c.width > 0 && n > c.width && !full && name != "logs_lines" {
						t.Errorf("%d columns: %s", n, line)
					}
				}
				golden(t, name+"_"+how+".txt", r.out+"---\n"+r.err)
			})
		}
	}
}

// Paths without a line of their own come last, whatever the limit and however many were denied.
func TestStats_Other(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"stats_other":        {"stats", "--since", "30m", "-n", "2"},
		"stats_other_path":   {"stats", "--since", "30m", "--path", "http/example/authz/allow"},
		"stats_other_no_fit": {"stats", "--since", "30m", "--by", "service", "--service", "nobody"},
		"stats_other_json":   {"stats", "--since", "30m", "--step", "1h", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{store: decisions(12), terminal: person(80)}
			for n := range 9 {
				d := readertest.Decision(100+n, now.Add(-time.Duration(n)*time.Minute))
				d.Path, d.Service, d.Verdict = new(reader.OtherPaths), new("authz"), reader.Denied
				w.store.Add(d)
			}
			r := w.call(args...)
			if r.code != 0 {
				t.Fatalf("exit %d, %s", r.code, r.err)
			}
			golden(t, name+".txt", r.out+"---\n"+r.err)
		})
	}
	w := &world{store: decisions(3)}
	d := readertest.Decision(100, now)
	d.Path = new(reader.OtherPaths)
	w.store.Add(d)
	if r := w.call("__complete", "logs", "--path", ""); r.code != 0 || !strings.Contains(r.out, "authz") || strings.Contains(r.out, reader.OtherPaths) {
		t.Errorf("completion: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// TestLogs_NextPageCommand: pasting what is shown walks all that was there, without doubles and gaps, though
// newer ones come in between.
func TestLogs_NextPageCommand(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{nil, {"--oldest"}} {
		w := &world{store: decisions(100), terminal: person(200)}
		args := append([]string{"logs", "-n", "7", "--match", "raw:/input/odd=\u001b[2J\u202e", "--since", "3h", "--verdict", "denied", "--allowed"}, order...)
		seen := map[string]int{}
		for page := range 20 {
			r := w.call(args...)
			if r.code != 0 {
				t.Fatalf("%q: exit %d, %s", args, r.code, r.err)
			}
			for _, line := range strings.Split(r.out, "\n")[1:] {
				if words := strings.Fields(line); len(words) > 0 {
					seen[words[len(words)-1]]++
				}
			}
			_, next, more := strings.Cut(r.err, "\n  docket ")
			if !more {
				break
			}
			args = unshell(t, strings.TrimSpace(next))
			w.store.Add(readertest.Decision(1000+page*5+1, now)) // denied
		}
		old := 0
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s is shown %d times", id, n)
			}
			old += n
		}
		if want := 40; old != want && order == nil || old < want {
			t.Errorf("%v: %d of %d", order, old, want)
		}
	}
}

// unshell splits a command as a shell does.
func unshell(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-c", `printf '%s\0' `+command).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestLogs_ShortPageGoesOn: a store that stops after a while is asked on, up to a bound.
func TestLogs_ShortPageGoesOn(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(50)}
	w.store.Part = 3
	r := w.call("logs", "--match", `input:/n=1`, "--json")
	var found struct {
		Decisions []toldDecision
		Next      string
	}
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 0 || len(found.Decisions) != 1 || found.Next != "" {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	var list struct{ Decisions []toldDecision }
	if err := json.Unmarshal([]byte(w.call("logs", "-n", "40", "--json").out), &list); err != nil || len(list.Decisions) != 40 {
		t.Errorf("%v, %d", err, len(list.Decisions))
	}
}

func TestLogs_WrongUse(t *testing.T) {
	t.Parallel()
	for args, why := range map[string]string{
		"--verdict nope": "unknown verdict", "--since x": "is not a time", "--since 1h --until 2h": "is not before --until", "--label x": "NAME=VALUE",
		"--label a=1 --label a=2": "only once", "--match foo:/x": "must begin with input", "-n 0": "1 or more", "-f --oldest": "cannot be used with --oldest", "-f --until 1h": "--until",
		"-f --after x": "--after", "--every 2s": "needs --follow", "-f --every 1ms": "100ms or more", "a b": "one too many", "a --denied": "selects one decision",
		"--after nonsense": "not a cursor of this search", "--path=": "--path is empty", "-f -n -1": "0 or more", "--requested-by=": "is empty",
	} {
		w := &world{store: decisions(3), bare: !strings.Contains(args, "nonsense")} // a cursor is the store's to judge
		if r := w.call(append([]string{"logs"}, strings.Fields(args)...)...); r.code != 2 || !strings.Contains(r.err, why) || r.out != "" {
			t.Errorf("%s: exit %d %s%s", args, r.code, r.out, r.err)
		}
	}
	for args, why := range map[string]string{
		"--by x": "path, service", "--step 7m": "a step must be", "--step 1s": "a step must be", "--step x": "a step must be", "--since 30d --step 5m": "take a longer step", "-n 0": "1 or more",
		"--since 2030-01-01": "the range is empty", "--since=": "--since is empty", "--service=": "--service is empty", "x": "unexpected argument",
	} {
		if r := (&world{store: decisions(3), bare: true}).call(append([]string{"stats"}, strings.Fields(args)...)...); r.code != 2 || !strings.Contains(r.err, why) {
			t.Errorf("%s: exit %d %s%s", args, r.code, r.out, r.err)
		}
	}
	if r := (&world{store: decisions(3)}).call("logs", "no-such"); r.code != 1 || !strings.Contains(r.err, "docket where-is no-such") {
		t.Errorf("exit %d %s", r.code, r.err)
	}
	w := &world{store: decisions(3)}
	w.store.Fail(errAway)
	for _, args := range []string{"logs", "logs x", "logs -f", "stats"} {
		if r := w.call(strings.Fields(args)...); r.code != 1 || !strings.Contains(r.err, "the database is away") {
			t.Errorf("%s: exit %d %s", args, r.code, r.err)
		}
	}
}

// TestLogs_InvalidText: text that no column can hold is refused before the server has to.
func TestLogs_InvalidText(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"logs", "--path", "a\xff"}, {"logs", "--service", "\xff"}, {"logs", "--requested-by", "\xff"}, {"logs", "a\xff"}, {"why", "a\xff"}, {"diff", "a", "a\xff"},
		{"diff", "a\xff", "a"}, {"stats", "--path", "\xff"}, {"logs", "-f", "--path", "\xff"}, {"logs", "--label", "a=\xff"}, {"logs", "--match", "input:/a=\xff"},
	} {
		if r := (&world{store: decisions(3), bare: true}).call(args...); r.code != 2 || !strings.Contains(r.err, "UTF-8") || strings.Contains(r.err, "\xff") {
			t.Errorf("%q: exit %d %q", args, r.code, r.err)
		}
	}
}

// TestPathHint_Guesses: where nothing was found, the path is guessed; `docket why` shows paths as Rego has them.
func TestPathHint_Guesses(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"data.no.such": "did you mean --path no/such?", "/v1/data/no/such": "did you mean --path no/such?", "data/no": "did you mean --path no?", "no/": "did you mean --path 'no/*'?",
		"*": "for all paths", "/*": "for all paths", "no/such": "", "no/such/*": "", "data.a/b": "",
	} {
		for _, command := range []string{"logs", "stats"} {
			r := (&world{store: decisions(3)}).call(command, "--path", path)
			if r.code != 0 || want != "" && !strings.Contains(r.err, want) || want == "" && strings.Contains(r.err, "did you mean") {
				t.Errorf("%s %s: exit %d %s", command, path, r.code, r.err)
			}
		}
	}
}

// TestShellWord_Hostile: hostile text is escaped as shells read it.
func TestShellWord_Hostile(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "a", "a b", "it's", "\x1b[31mred", "\u202eabc", "a\x01fe'\\ \n", "\xff\xfe9", "ü\u00ad1", "$HOME `x` \"\x7f"} {
		written := term.ShellWord(word)
		if term.Line(written) != written {
			t.Errorf("%q: %q", word, written)
		}
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+written).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q as %s is %q, %v", word, written, out, err)
		}
	}
}

// downError is a server that is starting.
type downError struct{}

func (downError) Error() string    { return "secret words" }
func (downError) SQLState() string { return "57P03" }

// TestFollow_NoDescriptorLeft: a short lack of file descriptors is waited out as an outage is.
func TestFollow_NoDescriptorLeft(t *testing.T) {
	t.Parallel()
	lack := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	for command, fail := range map[string]func(*world, error){
		"logs":  func(w *world, err error) { w.store.Fail(err) },
		"flips": func(w *world, err error) { w.states.Fail(err) },
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{store: decisions(3), states: statesKept(), signals: make(chan os.Signal, 1)}
				done := make(chan result, 1)
				go func() { done <- w.call(command, "-f", "-n", "1") }()
				time.Sleep(10 * time.Second)
				fail(w, lack)
				time.Sleep(10 * time.Second)
				fail(w, nil)
				time.Sleep(10 * time.Second)
				select {
				case r := <-done:
					t.Errorf("it ended: exit %d\n%s", r.code, r.err)
				default:
					w.signals <- syscall.SIGTERM
					if r := <-done; r.code != 0 || !strings.Contains(r.err, "does not answer (no_descriptors); waiting") || !strings.Contains(r.err, "answers again") {
						t.Errorf("exit %d\n%s", r.code, r.err)
					}
				}
			})
		})
	}
}

// TestFollow_EachOnceThroughOutage: each decision is shown once, from the last ones to a signal.
func TestFollow_EachOnceThroughOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{store: decisions(30), signals: make(chan os.Signal, 1)}
		done := make(chan result, 1)
		go func() { done <- w.call("logs", "-f", "-n", "4", "--lines") }()
		time.Sleep(1500 * time.Millisecond)
		if n := strings.Count(w.out.String(), "\n"); n != 4 {
			t.Errorf("%d of the last four", n)
		}
		w.store.Add(readertest.Decision(100, now.Add(time.Second)))
		w.store.Add(readertest.Decision(101, now.Add(-time.Hour))) // late: the time of storing counts
		time.Sleep(time.Second)
		if n := strings.Count(w.out.String(), "\n"); n != 6 {
			t.Errorf("%d after two more\n%s", n, w.err.String())
		}
		w.store.Fail(downError{})
		time.Sleep(5 * time.Second)
		w.store.Add(readertest.Decision(102, now))
		w.store.Fail(nil)
		time.Sleep(time.Second)
		if said := w.err.String(); strings.Count(said, "waiting\n") != 1 || !strings.Contains(said, "57P03") || !strings.Contains(said, "answers again") || strings.Contains(said, "secret") {
			t.Errorf("%q", said)
		}
		for i := range 2500 {
			w.store.Add(readertest.Decision(200+i, now))
		}
		time.Sleep(time.Second)
		w.signals <- syscall.SIGTERM
		r := <-done
		if r.code != 0 {
			t.Errorf("exit %d", r.code)
		}
		seen := map[string]bool{}
		for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
			var d toldDecision
			if err := json.Unmarshal([]byte(line), &d); err != nil || seen[d.ID] {
				t.Fatalf("%v, %s", err, line)
			}
			seen[d.ID] = true
		}
		if len(seen) != 4+3+2500 {
			t.Errorf("%d of them", len(seen))
		}
	})
}

// TestFollow_DayPrinted: the day is printed once before all lines of it; a wide line has it itself.
func TestFollow_DayPrinted(t *testing.T) {
	t.Parallel()
	midnight := now.Truncate(24 * time.Hour)
	for width, want := range map[int][]string{80: {"2026-11-20", "2", "2026-11-21", "2", "2026-11-20", "1"}, 140: {"5"}} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{store: decisions(0), terminal: person(width)}
			for i, after := range []time.Duration{-2 * time.Minute, -time.Minute, time.Minute, 2 * time.Minute} {
				w.store.Add(readertest.Decision(i, midnight.Add(after)))
			}
			done := make(chan result, 1)
			go func() { done <- w.call("logs", "-f", "--every", "100ms") }()
			time.Sleep(time.Second)
			w.store.Add(readertest.Decision(4, midnight.Add(-time.Second))) // it was stored late
			time.Sleep(time.Second)
			w.store.Fail(errors.New("no right"))
			r := <-done
			var got []string
			lines := 0
			for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
				if day := strings.TrimSpace(line); len(day) == len(time.DateOnly) {
					if lines > 0 {
						got = append(got, fmt.Sprint(lines))
					}
					got, lines = append(got, day), 0
				} else {
					lines++
				}
			}
			if got = append(got, fmt.Sprint(lines)); !slices.Equal(got, want) {
				t.Errorf("%d columns: days and lines of each %q, want %q:\n%s", width, got, want, r.out)
			}
		})
	}
}

// TestFollow_EndsOnLastingError: a missing right is one.
func TestFollow_EndsOnLastingError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{store: decisions(3), terminal: person(90)}
		done := make(chan result, 1)
		go func() { done <- w.call("logs", "-f", "--every", "100ms") }()
		time.Sleep(time.Second)
		w.store.Fail(errors.New("no right"))
		r := <-done
		if r.code != 1 || !strings.Contains(r.err, "no right") || strings.Count(r.out, "\n") != 4 { // the day, and three of it
			t.Errorf("exit %d %s%s", r.code, r.out, r.err)
		}
		quiet(t, r.out)
		for line := range strings.SplitSeq(r.out, "\n") {
			if utf8.RuneCountInString(line) > 90 {
				t.Error(line)
			}
		}
		golden(t, "logs_follow_90.txt", r.out)
	})
}

// TestFollow_NoneTwice: the place to follow from is taken before them.
func TestFollow_NoneTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{signals: make(chan os.Signal, 1), store: decisions(3)}
		late := readertest.Decision(50, now)
		w.store.AfterFollow = func() { w.store.AfterFollow = nil; w.store.Add(late) }
		done := make(chan result, 1)
		go func() { done <- w.call("logs", "-f", "--lines") }()
		time.Sleep(3 * time.Second)
		w.signals <- syscall.SIGINT
		if r := <-done; r.code != 0 || strings.Count(r.out, late.ID) != 1 {
			t.Errorf("exit %d, shown %d times\n%s", r.code, strings.Count(r.out, late.ID), r.err)
		}
	})
}

func TestCompletion_PathsAndServices(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"logs --path http": "http/example/authz/allow\t", "stats --service ch": "checkout\t", "logs --verdict de": "denied", "logs --match in": "input:/", "lo": "logs\t", "stats --by p": "path",
	} {
		r := (&world{store: decisions(20)}).call(append([]string{"__complete"}, strings.Fields(args)...)...)
		if !strings.Contains("\n"+r.out, "\n"+want) || r.code != 0 {
			t.Errorf("%s: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
		quiet(t, strings.ReplaceAll(r.out, "\t", ""))
	}
}

// TestLogs_YearThatIsToCome: a decision that is dated far ahead heads no page, is told, is found, and says what it is.
func TestLogs_YearThatIsToCome(t *testing.T) {
	t.Parallel()
	far := readertest.Decision(99, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	far.StoredAt = now.Add(-time.Minute)
	w := &world{store: decisions(3)}
	w.store.Add(far)
	const list = "docket logs --since 2026-11-21T"
	r := w.call("logs")
	if r.code != 0 || strings.Contains(r.out, far.ID) || !strings.Contains(r.err, "decisions dated more than 1h ahead of now are not shown. To list them:\n  "+list) {
		t.Errorf("%s%s", r.out, r.err)
	}
	_, words, _ := strings.Cut(r.err, "docket ")
	if r := w.call(strings.Fields(words)...); r.code != 0 || !strings.Contains(r.out, far.ID) || strings.Contains(r.err, "not shown") {
		t.Errorf("%s%s", r.out, r.err)
	}
	var answer struct {
		Decisions []struct {
			Ahead int64 `json:"ahead_seconds"`
		}
		Later time.Time
	}
	if r := w.call("logs", "--json"); json.Unmarshal([]byte(r.out), &answer) != nil || len(answer.Decisions) != 3 || answer.Later.Sub(now) != time.Hour || answer.Decisions[0].Ahead != 0 {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := w.call("logs", "--json", "--until", "9999-12-31"); json.Unmarshal([]byte(r.out), &answer) != nil || len(answer.Decisions) != 4 || answer.Decisions[0].Ahead < 1e9 {
		t.Errorf("%s%s", r.out, r.err)
	}
	const dated = " after it was stored: a clock was wrong, or the timestamp was made up"
	for _, args := range [][]string{{"logs", far.ID}, {"logs", "--full", "--until", "9999-12-31"}} {
		if r := w.call(args...); strings.Count(r.out, dated) != 1 {
			t.Errorf("%v: %s%s", args, r.out, r.err)
		}
	}
	if r := w.call("why", far.ID); !strings.Contains(strings.Join(strings.Fields(r.out), " "), "more than an hour later than when the decision was stored") {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := w.call("logs", "--service", "none"); strings.Contains(r.err, "ahead of now") {
		t.Errorf("of what does not fit it is told, too: %s", r.err)
	}
}

// toldDecision is a decision in JSON.
type toldDecision struct {
	ID string `json:"decision_id"`
}
