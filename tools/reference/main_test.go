package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/internal/programs/docket"
)

func TestReference_IsFresh(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), reference(docket.Pages())); diff != "" {
		t.Errorf("docs/commands.md is not what the program says (go run ./tools/reference -markdown docs/commands.md writes it):\n%s", diff)
	}
}

func TestReference_HasEveryCommand(t *testing.T) {
	t.Parallel()
	text := reference(docket.Pages())
	for _, command := range []string{"docket", "docket consume", "docket replay", "docket collect", "docket desk", "docket demo", "docket dlq retry", "docket consume where-is", "docket completion zsh"} {
		if !strings.Contains(text, "\n## "+command+"\n\n```text\n") {
			t.Errorf("%s is missing", command)
		}
	}
	if strings.Contains(text, "DOCKET_BATCH_MAX_WAIT") {
		t.Error("it repeats the list of settings")
	}
}

func TestMan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := write("", dir, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][]string{
		"docket":           {`.TH "DOCKET" 1 "" "docket v1.2.3"`, `.SH "READ DECISIONS"`, `docket\-consume(1)`},
		"docket-consume":   {"DOCKET_BATCH_MAX_WAIT", `.SH "EXIT CODES"`},
		"docket-dlq-retry": {`\-\-dry\-run`, `docket\-dlq(1)`},
		"consumer":         {".so man1/docket-consume.1"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s: %q is missing", name, part)
			}
		}
		for line := range strings.Lines(string(text)) {
			if command, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(command, ".") && !strings.Contains(" .TH .SH .nf .fi .so ", " "+command+" ") {
				t.Errorf("%s: roff reads %q as a command", name, line)
			}
		}
	}
}
