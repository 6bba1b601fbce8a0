package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/internal/service/config"
)

func TestKey_Dropped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, drop, mask, with string
	}{
		{"requested_by", "", "/requested_by", maskVariable},
		{"requested_by:host", "/requested_by", "", dropVariable},
		{"label:tenant", "/labels", "", dropVariable},
		{"label:a/b~c", "", "/labels/a~1b~0c", maskVariable},
		{"label:tenant", "", "/labels/host,/labels/*", maskVariable},
		{"input:/user/id", "/input/user", "", dropVariable},
		{"input:/user//id", "/input/user", "", dropVariable},
		{"input:/user/0", "", "/input/user/0", maskVariable},
		{"input:/user/id", "/input/user/name", "/input/id,/input/user/id/x,/labels/id,/requested_by", ""},
		{"decision_id", "/input", "/labels/*", ""},
		{"requested_by", "/input", "/labels/requested_by", ""},
	} {
		s := settings(t, []string{"127.0.0.1:1"}, "DOCKET_COLLECTOR_KEY="+c.key, "DOCKET_COLLECTOR_DROP="+c.drop, "DOCKET_COLLECTOR_MASK="+c.mask)
		err := Agree(s)
		said := config.Complaint{}
		if c.with == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if !errors.As(err, &said) || said.Variable != keyVariable || !strings.Contains(said.Text, c.with) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestRights_Agree: a file of rights that cannot be used is said before anything is opened.
func TestRights_Agree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const token = "opa:0123456789abcdef"
	for name, c := range map[string]struct{ path, tokens, want string }{
		"good":        {file("good", `{"opa":{"ids":["a"]}}`), token, ""},
		"no token":    {file("alone", `{"opa":{}}`), "", "without which no client has a name"},
		"not there":   {filepath.Join(dir, "none"), token, "cannot be read"},
		"a directory": {dir, token, "cannot be read"},
		"empty":       {file("empty", ""), token, "is empty"},
		"no JSON":     {file("text", "opa: a"), token, "no JSON object"},
		"too long":    {file("long", "{}"+strings.Repeat(" ", mostClients)), token, "more than"},
	} {
		err := Agree(settings(t, []string{"127.0.0.1:1"}, "DOCKET_COLLECTOR_CLIENTS_FILE="+c.path, "DOCKET_COLLECTOR_TOKENS="+c.tokens))
		said := config.Complaint{}
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &said) || said.Variable != clientsVariable || !strings.Contains(said.Text, c.want) || strings.Contains(said.Text, dir)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A pipe has the rights for the program that starts. To look at the settings before that takes nothing out of it.
func TestRights_PipeIsLeftToTheProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rights")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings(t, []string{"127.0.0.1:1"}, "DOCKET_COLLECTOR_CLIENTS_FILE="+path, "DOCKET_COLLECTOR_TOKENS=opa:0123456789abcdef")
	agreed := make(chan error, 1)
	go func() { agreed <- Agree(s) }()
	select {
	case err := <-agreed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it reads the pipe")
		_ = os.WriteFile(path, []byte(`{"opa":{}}`), 0o600)
		<-agreed
	}
}
