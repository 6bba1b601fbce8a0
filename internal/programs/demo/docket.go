package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Docket is how a user runs the program docket in another terminal.
type Docket struct {
	Folder  string // folder to change to first; empty: any
	Command string // for a shell
}

// module is the first line of this module's go.mod.
const module = "module docket"

// findDocket looks for docket beside this program. Then it looks for a clone of the repository around the working folder or around
// this program, then on the PATH. Without any of them the command is docket.
func findDocket() Docket {
	self, _ := os.Executable() // empty where it is unknown: then nothing is beside it
	folder, _ := os.Getwd()
	return docketOf(self, folder, exec.LookPath)
}

// docketOf is findDocket for the program self, started in folder.
func docketOf(self, folder string, lookPath func(string) (string, error)) Docket {
	if beside := filepath.Join(filepath.Dir(self), "docket"); self != "" && executes(beside) {
		return Docket{Command: shellWord(beside)}
	}
	if _, err := lookPath("go"); err == nil {
		for _, from := range []string{folder, filepath.Dir(self)} {
			if clone := cloneAround(from); clone != "" {
				return Docket{Folder: clone, Command: "go run ./cmd/docket"}
			}
		}
	}
	return Docket{Command: "docket"}
}

// executes says whether path is a file that may be executed.
func executes(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// cloneAround is the nearest folder around from that holds a clone of the repository; empty where there is none.
func cloneAround(from string) string {
	for dir, above := from, filepath.Dir(from); ; dir, above = above, filepath.Dir(above) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		first, _, _ := strings.Cut(string(content), "\n")
		_, merr := os.Stat(filepath.Join(dir, "cmd", "docket", "main.go"))
		if err == nil && merr == nil && strings.TrimSpace(first) == module {
			return dir
		}
		if above == dir {
			return ""
		}
	}
}

// plainWord is a word that every shell takes as it is.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_./:@%+=,-]+$`)

// shellWord quotes a word for a shell where that is necessary.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// subject is the one of the demo's decisions: OPA's only client, by DOCKET_READER_SUBJECT without its port.
const subject = "127.0.0.1"

// commands are lines for a shell: how to reach the demo's database and Kafka, and questions about the data. id is a
// denied decision.
func (d Docket) commands(databaseURL, broker, id string) []string {
	var lines []string
	if d.Folder != "" {
		lines = append(lines, "cd "+shellWord(d.Folder))
	}
	return append(lines,
		"export DOCKET_DATABASE_URL='"+databaseURL+"' DOCKET_KAFKA_BROKERS="+broker+" "+recordLimit, // by which verify judges dead letters
		d.Command+" why "+id,
		d.Command+" logs --denied",
		d.Command+" dlq groups",
		d.Command+" state "+subject,
		d.Command+" flips",
	)
}

// stayUp prints commands for another terminal and stays up until ctx ends. Without Keep it only tells how to stay up.
func (s *show) stayUp(ctx context.Context) error {
	if !s.cfg.Keep {
		s.screen.say("\nTo query this data, run the demo with --keep (make demo ARGS=--keep): it then stays up and prints commands to try.")
		return nil
	}
	id, err := s.denied(ctx)
	if err != nil {
		return because(ctx, err)
	}
	s.screen.say("\nThe demo stays up until Ctrl-C. Its programs log to %s.", s.cfg.Dir)
	s.screen.say("Paste these lines into another terminal. They explain one denied decision, list the latest denied decisions, and\n" +
		"group the dead letters by cause. docket state shows the newest answer on each path of the client " + subject + ", and docket\n" +
		"flips shows when an answer changed; the desk keeps both. With psql installed, psql \"$DOCKET_DATABASE_URL\" works, too.")
	if s.cfg.Docket.Command != "docket" {
		s.screen.say("Their output suggests further docket commands: run these as %s.", s.cfg.Docket.Command)
	}
	s.screen.say("")
	for _, line := range s.cfg.Docket.commands(s.database.URL(), s.places.Brokers[0], id) {
		s.screen.say("  %s", line)
	}
	<-ctx.Done()
	return nil
}

// denied is the id of a denied decision, of the latest that gives reasons if there is one. A user name of ASCII letters
// is preferred, as others are shown with escapes.
func (s *show) denied(ctx context.Context) (id string, err error) {
	conn, err := pgx.Connect(ctx, s.places.DatabaseURL)
	if err != nil {
		return "", fmt.Errorf("connect to find a denied decision: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, `
		SELECT decision_id FROM decision_logs WHERE NOT allowed
		ORDER BY coalesce(raw #> '{result,violations}' <> '[]', false) DESC, coalesce(raw #>> '{input,user}' ~ '^[a-z]+$', false) DESC, ts DESC
		LIMIT 1`).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("find a denied decision: %w", err)
	}
	return id, nil
}
