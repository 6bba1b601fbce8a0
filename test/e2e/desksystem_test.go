//go:build integration

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/record/envelope"
	"docket/internal/testkit/testenv"
)

// deskEnv makes the desk quick; the other programs have nothing to do with it.
func deskEnv(t *testing.T) []string {
	return []string{
		"DOCKET_DESK_GROUP=" + testenv.Prefix(t) + "desk", "DOCKET_DESK_RELAY_INTERVAL=100ms", "DOCKET_DESK_API_ADDR=", "DOCKET_DESK_RETRY_KINDS=",
	}
}

func (s *system) desk(env ...string) *process { return s.start("docket", env, "desk") }

// second is the same system for a person with another login for the database.
func (s *system) second(t *testing.T) *system {
	t.Helper()
	login := "second_" + strings.ToLower(rand.Text())
	s.exec(`CREATE ROLE ` + login + ` LOGIN SUPERUSER PASSWORD 'role'`)
	u, err := url.Parse(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(login, "role")
	other := *s
	other.env = append(slices.Clone(s.env), "DOCKET_DATABASE_URL="+u.String())
	return &other
}

// docket runs a command of the desk, which has to end with code, and reads its JSON into out where that is not nil. It
// returns what the command told people.
func (s *system) docket(out any, code int, args ...string) string {
	s.t.Helper()
	told, err := s.tryDocket(out, code, args...)
	if err != nil {
		s.t.Fatalf("docket %s: %v", strings.Join(args, " "), err)
	}
	return told
}

func (s *system) tryDocket(out any, code int, args ...string) (told string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if out != nil {
		args = append(slices.Clone(args), "--json")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "docket"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return "", err
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		return stderr.String(), fmt.Errorf("ended with %d, want %d\n%s%s", got, code, stdout.String(), stderr.String())
	}
	if out == nil {
		return stdout.String() + stderr.String(), nil
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		return stderr.String(), fmt.Errorf("%w\n%s", err, stdout.String())
	}
	return stderr.String(), nil
}

// The JSON of the commands, as far as the tests look.
type (
	shownGroup struct {
		Fingerprint, Kind, Code, Constraint string
		Open                                int
		Counts                              map[string]int
		Paths                               []string
	}
	shownEntry struct {
		ID, State, Kind, Code, Path string
		DecisionID                  string `json:"decision_id"`
		Attempts                    int
		Edited                      bool
	}
	shownAudit       struct{ Act, From, To, By, Why, Diff string }
	shownLetter      struct{ History []shownAudit }
	shownList[T any] struct{ Entries []T }
	shownJob         struct {
		ID                          int
		State, Operator, Note       string
		Sent, Stored, Dead, Refused int
	}
	shownTrial struct {
		Would     int `json:"would_be_stored"`
		StillFail []struct {
			Code, Constraint string
			Letters          int
		} `json:"still_fail"`
	}
)

// groups waits until the desk knows so many unresolved dead letters.
func (s *system) groups(open int) []shownGroup {
	s.t.Helper()
	var all shownList[shownGroup]
	eventually(s.t, patience, fmt.Sprintf("the ledger has %d open dead letters", open), func() error {
		all = shownList[shownGroup]{}
		if told, err := s.tryDocket(&all, 0, "dlq", "groups"); err != nil {
			return fmt.Errorf("%w %s", err, told)
		}
		n := 0
		for _, g := range all.Entries {
			n += g.Open
		}
		if n != open {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	return all.Entries
}

func (s *system) letters(filter ...string) []shownEntry {
	s.t.Helper()
	var all shownList[shownEntry]
	s.docket(&all, 0, append([]string{"dlq", "list", "--all"}, filter...)...)
	return all.Entries
}

// decisions gives n decisions of a path.
func decisions(path string, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(`{"decision_id":"%s-%d","timestamp":%q,"path":%q,"result":true}`, path, i, time.Now().UTC().Format(time.RFC3339Nano), path)
	}
	return values
}

// produced enters all n records that the source holds in the ledger of the account: retried ones are records of their own.
// code says what a decision of that path deserves, empty for a row.
func (s *system) produced(n int, code func(path string, retried bool) string) {
	s.t.Helper()
	for _, r := range s.read(s.places.Topic, n) {
		var d struct {
			ID   string    `json:"decision_id"`
			Time time.Time `json:"timestamp"`
			Path string    `json:"path"`
		}
		if err := json.Unmarshal(r.Value, &d); err != nil {
			s.t.Fatal(err)
		}
		retried := slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == envelope.RetryOf })
		s.ledger.Acknowledged(r.Topic, r.Partition, r.Offset, conservation.Record{Key: r.Key, Value: r.Value, Decisions: []conservation.Decision{
			{ID: d.ID, Time: d.Time, Body: r.Value, Code: code(d.Path, retried)},
		}})
	}
}

// once checks that so many decisions of a path have their row, each one.
func (s *system) once(path string, n int) {
	s.t.Helper()
	var rows, distinct int
	if err := s.scan("SELECT count(*), count(DISTINCT decision_id) FROM decision_logs WHERE path = $1", []any{path}, &rows, &distinct); err != nil {
		s.t.Fatal(err)
	}
	if rows != n || distinct != n {
		s.t.Errorf("%s has %d rows of %d decisions, want %d", path, rows, distinct, n)
	}
}

// audits gives the acts of each letter, by its id, in order, as act:name.
func (s *system) audits() map[string][]string {
	s.t.Helper()
	rows, err := s.connect().Query(s.t.Context(), "SELECT dead_letter_id, act, actor FROM dead_letter_audit ORDER BY audit_id")
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string][]string{}
	for rows.Next() {
		var id, act, actor string
		if err := rows.Scan(&id, &act, &actor); err != nil {
			s.t.Fatal(err)
		}
		all[id] = append(all[id], act+":"+actor)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}
