package tree

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli/term"
)

func jobbed() *book {
	b := newBook(deadLetters()...)
	f := ledger.Filter{Code: "23514", Path: "authz/allow", States: []ledger.State{ledger.Pending, ledger.Failed}}
	b.jobs = []ledger.Job{
		{ID: 1, Act: ledger.Closed, Filter: ledger.Filter{To: now.Add(-90 * 24 * time.Hour)}, State: ledger.JobDone, Operator: "mara", Reason: "of last summer", Matched: 120, Sent: 120, CreatedAt: now.Add(-50 * time.Hour), StartedAt: now.Add(-50 * time.Hour), EndedAt: now.Add(-49 * time.Hour), Note: "done: 120 resolved"},
		{ID: 2, Act: ledger.Retried, Filter: f, Rate: 50, State: ledger.JobStopped, Operator: "mara", Reason: "check widened", Matched: 4819, Sent: 5, Dead: 5, CreatedAt: now.Add(-2 * time.Hour), StartedAt: now.Add(-2 * time.Hour), EndedAt: now.Add(-2 * time.Hour), Note: "the first 5 failed alike: 23514; nothing more was sent"},
		{ID: 3, Act: ledger.Retried, Filter: f, Rate: 50, Limit: 4000, State: ledger.JobRunning, Operator: "oleg", Reason: "check widened, indeed \x1b[31m", Matched: 4819, Sent: 1200, Stored: 1100, Dead: 3, CreatedAt: now.Add(-time.Minute), StartedAt: now.Add(-59 * time.Second), Note: "1,200 sent; 50/s", Owner: "desk-1"},
	}
	return b
}

func horizons() []worker.HorizonLine {
	return []worker.HorizonLine{
		{Topic: "decision-logs-parking", Parked: true, RetentionKnown: true, RetentionSeconds: 604800},
		{Topic: "decision-logs-dlq", RetentionKnown: true, RetentionSeconds: 604800, Oldest: now.Add(-100 * time.Hour), Deadline: now.Add(68 * time.Hour), LeftSeconds: 68 * 3600, Used: 0.595, BytesLimited: true},
		{Topic: "decision-logs-parking-dlq", Error: "no broker answered"},
		{Topic: "decision-logs-urgent", Lane: "urgent", RetentionKnown: true, RetentionSeconds: 604800, Oldest: now.Add(-50 * time.Hour), OldestUnread: now.Add(-50 * time.Hour),
			Unread: 1204, Deadline: now.Add(118 * time.Hour), LossAt: now.Add(118 * time.Hour), LeftSeconds: 118 * 3600, Used: 0.298},
	}
}

// TestViews_Golden holds every view against what it was, at two widths of a terminal, in a pipe and as JSON.
func TestViews_Golden(t *testing.T) {
	t.Parallel()
	all := deadLetters()
	pending, failed, processing, unread, resolved := all[0].ID, all[5].ID, all[6].ID, all[7].ID, all[9].ID
	views := map[string][]string{
		"list":            {"dlq", "list"},
		"list_filtered":   {"dlq", "list", "--code", "23514", "--state", "failed,processing", "--limit", "1"},
		"list_none":       {"dlq", "list", "--code", "99999"},
		"groups":          {"dlq", "groups"},
		"show_pending":    {"dlq", "show", pending[:8]},
		"show_failed":     {"dlq", "show", failed},
		"show_processing": {"dlq", "show", processing},
		"show_resolved":   {"dlq", "show", resolved},
		"show_payload":    {"dlq", "show", pending, "--payload", "--history"},
		"show_unreadable": {"dlq", "show", unread, "--payload"},
		"jobs":            {"jobs", "list"},
		"job_running":     {"jobs", "show", "3"},
		"job_stopped":     {"jobs", "show", "2"},
		"job_done":        {"jobs", "show", "1"},
		"report":          {"report"},
	}
	for name, args := range views {
		for how, c := range map[string]struct {
			terminal term.Terminal
			args     []string
			width    int
		}{
			"80": {person(80), nil, 80}, "140": {person(140), nil, 140}, "pipe": {term.Terminal{}, nil, 0}, "json": {term.Terminal{}, []string{"--json"}, 0},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := &world{book: jobbed(), terminal: c.terminal, horizon: horizons()}
				r := w.call(append(args, c.args...)...)
				if r.code != 0 {
					t.Fatalf("exit %d, %s", r.code, r.err)
				}
				quiet(t, r.out+r.err)
				if !strings.Contains(strings.Join(args, " "), "--payload") && strings.Contains(r.out+r.err, "alice") {
					t.Error("shows a payload unasked")
				}
				if how == "json" && !json.Valid([]byte(r.out)) {
					t.Error("that is no JSON")
				}
				for line := range strings.SplitSeq(r.out, "\n") {
					pasted := strings.HasPrefix(line, "    docket ") || strings.HasPrefix(line, "Dead letter ")
					if n := utf8.RuneCountInString(line); c.width > 0 && n > c.width && !pasted && !strings.Contains(line, `": "`) {
						t.Errorf("%d columns: %s", n, line)
					}
				}
				golden(t, name+"_"+how+".txt", r.out+"---\n"+r.err)
			})
		}
	}
}
