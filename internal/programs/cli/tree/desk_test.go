package tree

import (
	"context"
	"errors"
	"fmt"
	"net"

	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/archive/nightly"
	"docket/internal/history/cold"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/record/decision"
	"docket/internal/record/subject"
	"docket/internal/service/config"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

const tokens = "vera:viewer:planted-token-of-viewer aude:auditor:planted-token-of-auditor mara:operator:planted-token-of-operator adam:admin:planted-token-of-admin"

// horizonOf is a horizon that was looked up before.
type horizonOf []worker.HorizonLine

func (h horizonOf) Look(context.Context, time.Time) []worker.HorizonLine { return h }

// trialOf is the dry run of a desk, which tells no progress.
type trialOf struct{ frame.Trial }

func untold(int64, int64) {}

func (t trialOf) Run(ctx context.Context, f ledger.Filter, limit int64, _ func(done, total int64)) (worker.TrialResult, error) {
	return t.Trial.Run(ctx, f, limit, untold)
}

func (t trialOf) RunIDs(ctx context.Context, ids []string, _ func(done, total int64)) (worker.TrialResult, error) {
	return t.Trial.RunIDs(ctx, ids, untold)
}

// tailed is a store whose places can be written, as those of Postgres can.
type tailed struct{ *readertest.Store }

func (tailed) TailText(t reader.Tail) (string, error) { return fmt.Sprint(t.Mark), nil }

func (tailed) ParseTail(text string) (reader.Tail, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return reader.Tail{}, reader.ErrCursor
	}
	return reader.Tail{Mark: n}, nil
}

// overDesk lets the world be asked by a desk, with the token of a role.
func (w *world) overDesk(t *testing.T, role string) *world {
	t.Helper()
	w.filled()
	settings, _, err := config.LoadWithout(config.Desk, w.environ, nil, "DOCKET_DATABASE_URL")
	if err != nil {
		t.Fatal(err)
	}
	sys := w.open(settings)
	var who api.Auth
	if who.Tokens, err = api.ParseTokens(tokens); err != nil {
		t.Fatal(err)
	}
	spec, err := subject.Parse(settings.ReaderSubject)
	if err != nil {
		t.Fatal(err)
	}
	ports := api.Ports{
		Question: reader.Question{Subject: spec},
		Book:     w.book, Horizon: horizonOf(w.horizon), Backlog: sys.Backlog, Calendar: sys.Calendar, Decisions: sys.Decisions, States: sys.States, Complete: sys.Complete,
		Elsewhere: func(ctx context.Context, id string) (lookup.Answer, error) { return sys.Look.Find(ctx, id), nil },
		Check: func(context.Context) []api.Finding {
			if w.failing {
				return []api.Finding{{Level: "fail", What: "topic x", Detail: "it is missing", Hint: "create it"}}
			}
			return []api.Finding{{Level: "ok", What: "brokers", Detail: "3 answer"}, {Level: "warn", What: "topic x", Detail: "replication \x1b[31m1", Hint: "raise it"}}
		},
		Inventory: func(ctx context.Context) (*inventory.Inventory, error) {
			shelf, err := sys.Shelf(settings.ArchiveTo)
			if err != nil {
				return nil, err
			}
			return inventory.Source{
				Shelf: shelf, Table: w.days, Left: w.leftDays, Letters: w.lettersNoted, Today: archive.DayOf(now), Wanted: settings.ArchiveAfter != "", Told: error.Error,
				Note: func(ctx context.Context) (string, time.Time, error) { return w.book.Remembered(ctx, nightly.NoteName) },
			}.Take(ctx)
		},
		Prove: func(ctx context.Context, name string) error {
			if w.prove != nil {
				if err := w.prove(); err != nil {
					return err
				}
			}
			return cold.New(cold.Config{Where: settings.ArchiveTo, Table: "decision_logs", LineBytes: archive.MostLine(1 << 20), Shelf: func() (archive.Shelf, error) { return sys.Shelf(settings.ArchiveTo) }}).Prove(ctx, name)
		},
		Forget: func(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (*archive.Forgotten, string, error) {
			shelf, err := sys.Shelf(settings.ArchiveTo)
			if err != nil {
				return nil, "", err
			}
			c := archive.Carrier{Table: w.days, Shelf: shelf, By: by.Name, Now: func() time.Time { return now }}
			earlier, err := c.Forget(ctx, day, by.Why, dry)
			return earlier, shelf.String(), err
		},
		ForgetLetters: func(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (done archive.LettersForgotten, where string, err error) {
			shelf, err := sys.Shelf(settings.ArchiveTo)
			if err != nil {
				return done, "", err
			}
			c := archive.LettersCarrier{Table: w.letters, Shelf: shelf, By: by.Name, Now: func() time.Time { return now }}
			done, err = c.Forget(ctx, day, by.Why, dry)
			return done, shelf.String(), err
		},
		Verify: func(_ context.Context, scope api.VerifyScope) (api.Verification, error) {
			w.verified = append(w.verified, scope)
			if len(scope.From) > 0 && scope.From[0] == "other/0/1" {
				return api.Verification{}, &api.PlaceError{Expected: "TOPIC/PARTITION/OFFSET in the source topic decision-logs"}
			}
			return api.Verification{Broken: w.failing, Text: "I1   \x1b[31mok\n", Report: []byte(`{"broken":false,"verdicts":[]}`)}, nil
		},
		WhereIs: func(context.Context, string) (api.Whereabouts, error) {
			return api.Whereabouts{Text: "decision-logs/0/7, 1 decision\n", Report: []byte(`{"records":[]}`), Settled: true}, nil
		},
	}
	if sys.Trial != nil {
		ports.Trial = trialOf{sys.Trial}
	}
	if store, plain := sys.Decisions.(*readertest.Store); plain {
		ports.Decisions = tailed{store}
	}
	h, err := api.New(api.Config{Version: "1.2.3", MaxRecordBytes: int64(settings.MaxRecordBytes), Lease: time.Minute, Registry: prometheus.NewRegistry(), Now: func() time.Time { return now }, FollowEvery: 10 * time.Millisecond}, ports, who, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	w.desk, w.remote = server.URL, role
	w.environ = slices.DeleteFunc(slices.Clone(w.environ), func(s string) bool { return strings.HasPrefix(s, "DOCKET_SHARD") }) // of the desk alone
	w.token = tokenFile(t, "planted-token-of-"+role)
	return w
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// same makes texts of both ways comparable: a desk knows the operator by the token.
func same(text string) string {
	return strings.NewReplacer(" --operator YOU", "", " --operator NAME", "", "with a database login of their own", "with a token of their own").Replace(text)
}

// both asks a world on its database and by a desk, and expects one answer.
func both(t *testing.T, role string, fresh func() *world, args ...string) {
	t.Helper()
	direct := fresh().call(args...)
	remote := fresh().overDesk(t, role).call(args...)
	if direct.code != remote.code {
		t.Errorf("%v: exit %d by the desk, %d on the database\n%s%s", args, remote.code, direct.code, remote.out, remote.err)
	}
	if diff := cmp.Diff(same(direct.out), same(remote.out)); diff != "" {
		t.Errorf("%v prints something else by the desk (+):\n%s", args, diff)
	}
	if diff := cmp.Diff(same(direct.err), same(remote.err)); diff != "" {
		t.Errorf("%v says something else by the desk (+):\n%s", args, diff)
	}
}

func TestDesk_SameDeadLetters(t *testing.T) {
	t.Parallel()
	all := deadLetters()
	for name, args := range map[string]string{
		"list": "dlq list", "filtered": "dlq list --code 23514 --state failed,processing --limit 1", "none": "dlq list --code 99999", "groups": "dlq groups",
		"show": "dlq show " + all[0].ID[:8], "failed": "dlq show " + all[5].ID, "processing": "dlq show " + all[6].ID, "resolved": "dlq show " + all[9].ID,
		"payload": "dlq show " + all[0].ID + " --payload --history", "unreadable": "dlq show " + all[7].ID + " --payload", "raw": "dlq show " + all[7].ID + " --raw",
		"audit": "dlq audit", "all acts": "dlq audit --act all -n 3", "more": "dlq audit --act all --before 5", "an act": "dlq audit --act closed --actor mara", "none audited": "dlq audit --actor nobody",
		"groups audited": "dlq audit --groups", "a group audited": "dlq audit --groups --act assigned --group " + all[0].Fingerprint[:6], "days": "archive days", "fewer days": "archive days -n 1 --before 2026-11-02",
		"jobs": "jobs list", "job": "jobs show 3", "stopped": "jobs show 2", "absent": "jobs show 99", "absent letter": "dlq show ffffff", "surplus": "dlq surplus", "report": "report --no-horizon",
		"retry": "dlq retry " + all[0].ID + " --operator mara --detach", "refused": "dlq retry " + all[6].ID + " " + all[1].ID + " --operator mara --detach",
		"resolve": "dlq resolve " + all[0].ID + " --operator mara --note done", "stop": "jobs stop 3 --operator mara", "resume": "jobs resume 2 --operator adam",
	} {
		for _, how := range []string{"", " --json", " --wide"} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				role := "operator"
				if name == "resume" {
					role = "admin"
				}
				both(t, role, func() *world { return &world{book: jobbed(), horizon: horizons(), calendar: calendar} }, strings.Fields(args+how)...)
			})
		}
	}
}

func TestDesk_SameHorizon(t *testing.T) {
	t.Parallel()
	known := slices.DeleteFunc(horizons(), func(l worker.HorizonLine) bool { return l.Error != "" }) // the desk's log has errors
	for _, how := range []string{"", " --json"} {
		both(t, "viewer", func() *world { return &world{book: jobbed(), horizon: known} }, strings.Fields("report"+how)...)
	}
}

func TestDesk_SameDryRun(t *testing.T) {
	t.Parallel()
	id := deadLetters()[0].ID
	result := worker.TrialResult{
		Total: 12, Would: 3, There: 2, Conflict: 1, StillFail: []worker.TrialFault{{Code: "23514", Constraint: "c", Letters: 4}, {Code: "22001", Column: "path", Letters: 1}},
		Undecodable: map[decision.Reason]int64{decision.Syntax: 1},
	}
	payload := filepath.Join(t.TempDir(), "value.json")
	if err := os.WriteFile(payload, []byte(`{"decision_id":"d-0000","path":"authz/deny","timestamp":"2026-11-21T10:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]worker.TrialResult{"reasons": result, "fine": {Total: 2, Would: 2}, "unwell": {Unwell: &worker.TrialUnwell{Code: "42P01", Hint: "migrate"}}} {
		for _, args := range []string{"dlq retry --code 23514 --dry-run", "dlq retry " + id + " --dry-run", "dlq retry --all --dry-run --json", "dlq edit " + id + " --dry-run --file " + payload, "dlq edit " + id + " --dry-run --json --file " + payload} {
			t.Run(name+" "+args[:9], func(t *testing.T) {
				t.Parallel()
				both(t, "operator", func() *world { return &world{trial: &trial{result: r}} }, strings.Fields(args)...)
			})
		}
	}
}

func TestDesk_SameEdits(t *testing.T) {
	t.Parallel()
	id := deadLetters()[0].ID
	path := filepath.Join(t.TempDir(), "value.json")
	if err := os.WriteFile(path, []byte(`{"decision_id":"d-0000","path":"authz/deny","timestamp":"2026-11-21T10:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	made := func(touches ...string) func() *world {
		return func() *world {
			w := &world{book: newBook(deadLetters()...)}
			w.book.touches = touches
			if len(touches) > 0 {
				if _, err := w.book.Propose(t.Context(), ledger.Draft{LetterID: id, Value: []byte(`{"path":"x"}`)}, ledger.Actor{Name: "oleg", Why: "the path"}); err != nil {
					t.Fatal(err)
				}
			}
			return w
		}
	}
	both(t, "operator", made(), "dlq", "edit", id, "--file", path, "--yes", "--no-retry", "--operator", "mara", "--reason", "x")
	for _, args := range []string{
		"dlq edit " + id + " --file " + path + " --yes --operator adam --reason x", "dlq proposals", "dlq proposals 1", "dlq proposals --all --json", "dlq approve 1 --yes --operator adam --reason x --detach",
		"dlq reject 1 --operator adam --reason x", "dlq approve 7 --yes --operator adam --reason x",
	} {
		t.Run(args[:13], func(t *testing.T) {
			t.Parallel()
			both(t, "admin", made("path"), strings.Fields(args)...)
		})
	}
}

// TestDesk_Followed: a decision that is stored while a command follows is shown once, also after an outage.
func TestDesk_Followed(t *testing.T) {
	t.Parallel()
	all := readertest.Decisions(8, now)
	w := &world{store: decisions(0), signals: make(chan os.Signal, 1)}
	w.store.Add(all[:3]...)
	w.overDesk(t, "viewer")
	ended := make(chan result)
	go func() { ended <- w.call("logs", "-f", "-n", "1", "--every", "100ms", "--lines") }()
	shows := func(text string) {
		over, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
		defer tick.Stop()
		for !strings.Contains(w.out.String()+w.err.String(), text) {
			select {
			case <-over:
				t.Errorf("no %s in\n%s%s", text, w.out.String(), w.err.String())
				return
			case <-tick.C:
			}
		}
	}
	shows(all[2].ID)
	w.store.Add(all[3:5]...)
	shows(all[4].ID)
	w.store.Fail(&net.OpError{Op: "dial", Err: errors.New("away")})
	shows("the desk does not answer (network); waiting")
	w.store.Fail(nil)
	shows("the desk answers again")
	w.store.Add(all[5])
	shows(all[5].ID)
	w.signals <- syscall.SIGINT
	r := <-ended
	if r.code != 0 || strings.Count(r.out, "\n") != 4 {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// TestDesk_LeastRole: a viewer sees columns, and is told which role the rest needs.
func TestDesk_LeastRole(t *testing.T) {
	t.Parallel()
	id, letter := readertest.Decisions(12, now)[6].ID, deadLetters()[0].ID
	for args, needs := range map[string]string{
		"logs": "", "logs " + id: "", "stats": "", "dlq list": "", "dlq show " + letter: "", "jobs list": "", "report": "", "where-is decision-logs/0/7": "",
		"logs --full": "auditor", "logs " + id + " --full": "auditor", "why " + id: "auditor", "diff " + id + " " + id: "auditor", "state alice": "auditor", "flips": "auditor", "logs --match input:/n=1": "auditor",
		"archive list": "", "archive forget 2026-08-01 --dry-run": "admin",
		"verify": "operator", "check": "operator", "dlq show " + letter + " --payload": "operator", "dlq retry " + letter: "operator", "jobs stop 3": "operator", "dlq approve 1 --reason x --yes": "operator",
	} {
		w := (&world{store: decisions(12), book: jobbed(), states: statesKept(), days: young{}, shelf: archive.Dir(t.TempDir())}).overDesk(t, "viewer")
		r := w.call(strings.Fields(args)...)
		if needs == "" && r.code != 0 || needs != "" && (r.code != 1 || !strings.Contains(r.err, "the role "+needs) && !strings.Contains(r.err, "needs the role "+needs)) {
			t.Errorf("%s: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
		if strings.Contains(r.out+r.err, readertest.Secret) {
			t.Errorf("%s shows a payload", args)
		}
	}
}

// TestDesk_Check: the desk checks, and the answer is printed as that of the command on its host.
func TestDesk_Check(t *testing.T) {
	t.Parallel()
	w := (&world{}).overDesk(t, "operator")
	r := w.call("check")
	if r.code != 0 || r.out != "ok    brokers: 3 answer\nwarn  topic x: replication \\x1b[31m1; raise it\n" || !strings.Contains(r.err, "does not see the spools") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	w = (&world{failing: true}).overDesk(t, "operator")
	r = w.call("check", "--json")
	if r.code != 1 || !strings.Contains(r.out, `"failed": true`) || !strings.Contains(r.out, `"hint": "create it"`) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// TestDesk_Verify: the desk verifies the scope of the flags, and the answer is printed as that of the command on its host.
func TestDesk_Verify(t *testing.T) {
	t.Parallel()
	w := (&world{}).overDesk(t, "operator")
	r := w.call("verify", "--from", "decision-logs/0/7", "--from", "decision-logs/1/8", "--settled")
	if r.code != 0 || r.out != "I1   \\x1b[31mok\n" || !strings.Contains(r.err, "a spool that it does not see") || len(w.verified) != 1 || !w.verified[0].Settled || len(w.verified[0].From) != 2 || !w.verified[0].Since.IsZero() {
		t.Errorf("exit %d, %+v\n%s%s", r.code, w.verified, r.out, r.err)
	}
	if r = w.call("verify", "--since", "2026-11-20", "--json"); r.code != 0 || !strings.Contains(r.out, `"broken": false`) || len(w.verified) != 2 || !w.verified[1].Since.Equal(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("exit %d, %+v\n%s%s", r.code, w.verified, r.out, r.err)
	}
	w.failing = true
	if r = w.call("verify"); r.code != 1 || r.out == "" {
		t.Errorf("broken: exit %d\n%s%s", r.code, r.out, r.err)
	}
	for _, args := range [][]string{{"--spool", "x"}, {"--metrics", "http://127.0.0.1:1/metrics"}, {"--try-dead-letters"}, {"--from", "x"}, {"--from", "other/0/1"}} {
		if r := w.call(append([]string{"verify"}, args...)...); r.code != 2 || r.out != "" {
			t.Errorf("%v: exit %d, %d asked\n%s%s", args, r.code, len(w.verified), r.out, r.err)
		}
	}
	if len(w.verified) != 4 {
		t.Errorf("%+v", w.verified)
	}
}

func TestDesk_SameDecisions(t *testing.T) {
	t.Parallel()
	ids := readertest.Decisions(12, now)
	for name, args := range map[string]string{
		"logs": "logs", "denied": "logs --denied -n 3", "oldest": "logs --oldest -n 4", "full": "logs --full -n 2", "lines": "logs --lines", "match": "logs --match input:/n=1",
		"none": "logs --path no/such", "one": "logs " + ids[6].ID, "short": "logs " + ids[6].ID[:8], "one full": "logs " + ids[6].ID + " --full", "absent": "logs no-such-id-at-all",
		"why": "why " + ids[6].ID, "why short": "why " + ids[3].ID[:8], "why full": "why " + ids[6].ID + " --full", "why subject": "why " + ids[6].ID + " --subject input:/user --same-input",
		"why absent": "why no-such-id-at-all", "diff": "diff " + ids[6].ID + " " + ids[7].ID, "diff absent": "diff " + ids[6].ID + " nosuchid",
		"stats": "stats --since 30m", "by service": "stats --since 2h --by service --step 5m", "state": "state alice", "nobody": "state nobody", "flips": "flips", "flips of": "flips --subject alice --since 3d -n 2",
	} {
		for _, how := range []string{"", " --json"} {
			if name == "lines" && how != "" {
				continue
			}
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				both(t, "auditor", func() *world {
					return &world{store: decisions(12), states: statesKept(), complete: completed(t, &completetest.Log{}, completetest.Books{N: 2})}
				}, strings.Fields(args+how)...)
			})
		}
	}
}

// A desk takes as many values of a flag as docs/remote.md says.
func TestDesk_ManyValues(t *testing.T) {
	t.Parallel()
	for flag, command := range map[string]string{
		"--path http/*": "logs", "--service checkout": "stats --since 30m", "--requested-by 10.0.0.1": "logs", "--label a=b": "logs", "--match input:/n=1": "logs",
		"--path authz/*": "flips", "--path admin/*": "state alice",
	} {
		t.Run(command+" "+flag, func(t *testing.T) {
			t.Parallel()
			both(t, "auditor", func() *world {
				return &world{store: decisions(3), states: statesKept(), complete: completed(t, &completetest.Log{}, completetest.Books{N: 2})}
			}, strings.Fields(command+strings.Repeat(" "+flag, 200))...)
		})
	}
}
