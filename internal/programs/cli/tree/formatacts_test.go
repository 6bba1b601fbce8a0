package tree

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/output"
	"docket/internal/testkit/kafkatest"
)

// TestFormat_EveryAct: a command that has acted does not exit as for wrong use, in any format.
func TestFormat_EveryAct(t *testing.T) {
	t.Parallel()
	id, group := deadLetters()[0].ID, deadLetters()[0].Fingerprint
	for _, args := range [][]string{
		{"dlq", "retry", id, "--operator", "mara", "--detach"},
		{"dlq", "retry", "--all", "--operator", "mara", "--reason", "r", "--detach"},
		{"dlq", "retry", "--code", "99999", "--operator", "mara", "--reason", "nothing matches"},
		{"dlq", "resolve", id, "--operator", "mara", "--note", "n"},
		{"dlq", "resolve", "--group", group, "--operator", "mara", "--note", "n", "--detach"},
		{"dlq", "snooze", id, "--until", "2d", "--operator", "mara", "--reason", "r"},
		{"dlq", "snooze", "--group", group, "--until", "2d", "--operator", "mara", "--reason", "r"},
		{"dlq", "assign", "oleg", id, "--operator", "mara", "--reason", "r"},
		{"dlq", "assign", "oleg", "--group", group, "--operator", "mara", "--reason", "r"},
		{"dlq", "edit", id, "--file", "-", "--yes", "--operator", "mara", "--reason", "r", "--detach"},
		{"dlq", "approve", "1", "--yes", "--operator", "oleg", "--reason", "r", "--detach"},
		{"dlq", "reject", "1", "--operator", "oleg", "--reason", "r"},
		{"dlq", "proposals"},
		{"dlq", "rules", "add", "retry", "--group", group, "--until", "1w", "--operator", "mara", "--reason", "r"},
		{"jobs", "stop", "3", "--operator", "mara", "--reason", "r"},
		{"jobs", "resume", "3", "--operator", "mara", "--reason", "r"},
	} {
		for _, f := range output.Formats() {
			t.Run(strings.Join(args, " ")+" "+f, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := proposing()
					b.jobs = jobbed().jobs
					w := &world{book: b, stdin: string(b.proposals[0].Value)}
					r := w.call(append(slices.Clone(args), "-o", f)...)
					nothing := strings.Contains(r.err, "nothing was changed") || strings.Contains(r.err, "is assigned to")
					if r.code != cli.Done || r.out == "" && !nothing || strings.Contains(r.out, "<nil>") {
						t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
					}
				})
			})
		}
	}
}

// TestFormat_TopicsCreated: the answer names the topics in each format, and the brokers have them.
func TestFormat_TopicsCreated(t *testing.T) {
	t.Parallel()
	for _, f := range output.Formats() {
		c := kafkatest.New(t, kfake.NumBrokers(3))
		w := &world{environ: []string{"DOCKET_KAFKA_BROKERS=" + strings.Join(c.Brokers(), ",")}}
		r := w.call("topics", "create", "-o", f)
		if r.code != cli.Done || !strings.Contains(r.out, "decision-logs-parking-dlq") {
			t.Errorf("%s: exit %d\n%s%s", f, r.code, r.out, r.err)
		}
		if f == "id" && r.out != "decision-logs\ndecision-logs-parking\ndecision-logs-dlq\ndecision-logs-parking-dlq\n" || f == "csv" && !strings.HasPrefix(r.out, "name,result,") {
			t.Errorf("%s: %q", f, r.out)
		}
	}
}

// TestFormat_IDsOfSettings: a setting is named by its name, and not by its range.
func TestFormat_IDsOfSettings(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines((&world{}).call("settings", "-o", "id").out) {
		if !strings.HasPrefix(line, "DOCKET_") {
			t.Errorf("%q", line)
		}
	}
}

// TestFormat_TellsOtherLists: CSV of the lines of a report says that it has horizons, too.
func TestFormat_TellsOtherLists(t *testing.T) {
	t.Parallel()
	w := &world{horizon: horizons()}
	if r := w.call("report", "-o", "csv"); r.code != cli.Done || !strings.Contains(r.err, "docket: horizons: ") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}
