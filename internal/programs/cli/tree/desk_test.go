package tree

import (
	"context"

	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/worker"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/record/subject"
	"docket/internal/service/config"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

const tokens = "vera:viewer:planted-token-of-viewer aude:auditor:planted-token-of-auditor mara:operator:planted-token-of-operator adam:admin:planted-token-of-admin"

// horizonOf is a horizon that was looked up before.
type horizonOf []worker.HorizonLine

func (h horizonOf) Look(context.Context, time.Time) []worker.HorizonLine { return h }

// trialOf is the dry run of a desk without its last act.
func trialOf(sys *frame.System) api.Trial {
	if sys.Trial == nil {
		return nil
	}
	return sys.Trial
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
		Book:     w.book, Horizon: horizonOf(w.horizon), Backlog: sys.Backlog, Decisions: sys.Decisions, States: sys.States, Complete: sys.Complete,
		Elsewhere: func(ctx context.Context, id string) (lookup.Answer, error) { return sys.Look.Find(ctx, id), nil },
		WhereIs: func(context.Context, string) (api.Whereabouts, error) {
			return api.Whereabouts{Text: "decision-logs/0/7, 1 decision\n", Report: []byte(`{"records":[]}`), Settled: true}, nil
		},
	}
	if trial := trialOf(sys); trial != nil {
		ports.Trial = trial
	}
	h, err := api.New(api.Config{Version: "1.2.3", Lease: time.Minute, Registry: prometheus.NewRegistry(), Now: func() time.Time { return now }, FollowEvery: 10 * time.Millisecond}, ports, who, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	w.desk, w.remote = server.URL, role
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

// same makes texts of both ways comparable: a desk knows the operator.
func same(text string) string { return strings.ReplaceAll(text, " --operator YOU", "") }

// both asks a world on its database and by a desk, and expects one answer.
func both(t *testing.T, role string, make func() *world, args ...string) {
	t.Helper()
	direct := make().call(args...)
	remote := make().overDesk(t, role).call(args...)
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
				both(t, role, func() *world { return &world{book: jobbed(), horizon: horizons()} }, strings.Fields(args+how)...)
			})
		}
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
