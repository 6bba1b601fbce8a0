package tree

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"docket/internal/programs/cli"
)

// listener is a desk that refuses everything, and tells by whom it was asked.
type listener struct {
	url  string
	mu   sync.Mutex
	seen []string
}

func asking(t *testing.T) *listener {
	t.Helper()
	a := &listener{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen = append(a.seen, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"status":403,"detail":"this needs the role viewer","hint":"ask for it"}`)) // the client is gone
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// by takes the tokens that were seen.
func (a *listener) by() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	a.seen = nil
	if len(seen) == 0 {
		return "nobody"
	}
	return seen[0]
}

const database = "DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x"

func TestTarget_Precedence(t *testing.T) {
	t.Parallel()
	flagged, environ, current, named, bare := asking(t), asking(t), asking(t), asking(t), asking(t)
	home := t.TempDir()
	w := &world{bare: true, environ: []string{"XDG_CONFIG_HOME=" + home}}
	for name, desk := range map[string]*listener{"current": current, "named": named} {
		if r := w.call("context", "add", name, "--server", desk.url, "--token-file", tokenFile(t, "token-of-"+name)); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	if r := w.call("context", "add", "bare", "--server", bare.url); r.code != 0 {
		t.Fatal(r.err)
	}
	if r := w.call("context", "use", "current"); r.code != 0 {
		t.Fatal(r.err)
	}
	inEnvironment := []string{"DOCKET_SERVER=" + environ.url, "DOCKET_TOKEN=token-of-environment"}
	other := tokenFile(t, "token-of-flag")
	for name, c := range map[string]struct {
		environ []string
		args    string
		desk    *listener // nil: the database
		by      string
		code    int
	}{
		"the current context":             {nil, "", current, "token-of-current", 1},
		"a context by flag":               {nil, "--context named", named, "token-of-named", 1},
		"a context by environment":        {[]string{"DOCKET_CONTEXT=named"}, "", named, "token-of-named", 1},
		"a token by flag":                 {nil, "--context named --token-file " + other, named, "token-of-flag", 1},
		"a token of elsewhere":            {[]string{"DOCKET_TOKEN=token-of-environment"}, "", current, "token-of-current", 1},
		"a token for another context":     {[]string{"DOCKET_TOKEN=token-of-environment", "DOCKET_CONTEXT=named"}, "--context bare", bare, "", 1},
		"a token for no context":          {[]string{"DOCKET_TOKEN=token-of-environment"}, "--context bare", bare, "", 1},
		"a token for this context":        {[]string{"DOCKET_TOKEN=token-of-environment", "DOCKET_CONTEXT=bare"}, "", bare, "token-of-environment", 1},
		"the same context by flag":        {[]string{"DOCKET_TOKEN=token-of-environment", "DOCKET_CONTEXT=bare"}, "--context bare", bare, "token-of-environment", 1},
		"a server over a context":         {[]string{"DOCKET_TOKEN=token-of-environment", "DOCKET_CONTEXT=bare"}, "--server " + flagged.url, flagged, "", 1},
		"the environment":                 {inEnvironment, "", environ, "token-of-environment", 1},
		"a flag over the environment":     {inEnvironment, "--server " + flagged.url, flagged, "", 1},
		"the same server by flag":         {inEnvironment, "--server " + environ.url, environ, "token-of-environment", 1},
		"a context over the environment":  {inEnvironment, "--context=named", named, "token-of-named", 1},
		"a database over the current one": {[]string{database}, "", nil, "nobody", 0},
		"a database and a server":         {append([]string{database}, inEnvironment...), "", environ, "nobody", cli.Misuse},
		"a database and a flag":           {[]string{database}, "--server " + flagged.url, flagged, "nobody", cli.Misuse},
		"a database and a named context":  {[]string{database}, "--context named", named, "nobody", cli.Misuse},
		"a server and a context":          {nil, "--context named --server " + flagged.url, flagged, "nobody", cli.Misuse},
		"no such context":                 {nil, "--context nemed", named, "nobody", cli.Misuse},
		"no such token file":              {nil, "--token-file /no/such/file", current, "nobody", cli.Misuse},
		"plain http to another host":      {nil, "--server http://desk.example --token-file " + other, flagged, "nobody", cli.Misuse},
	} {
		w := &world{bare: true, environ: append([]string{"XDG_CONFIG_HOME=" + home}, c.environ...)}
		r := w.call(append([]string{"dlq", "groups"}, strings.Fields(c.args)...)...)
		by := "nobody"
		if c.desk != nil {
			by = c.desk.by()
		}
		if r.code != c.code || by != c.by {
			t.Errorf("%s: exit %d, the desk was asked by %q\n%s", name, r.code, by, r.err)
		}
		for _, desk := range []*listener{flagged, environ, current, named, bare} {
			if by := desk.by(); by != "nobody" {
				t.Errorf("%s: another desk was asked by %q", name, by)
			}
		}
	}
	if r := w.call("context", "use", "bare"); r.code != 0 {
		t.Fatal(r.err)
	}
	w.environ = append(w.environ, "DOCKET_TOKEN=token-of-environment")
	if r := w.call("dlq", "groups"); r.code != 1 || bare.by() != "" {
		t.Errorf("a token that is exported for no desk reaches the current context: exit %d", r.code)
	}
}

func TestTarget_CommandsOfTheDatabase(t *testing.T) {
	t.Parallel()
	desk := asking(t)
	for _, args := range []string{
		"archive list --from x", "archive verify --all --from x", "archive forget 2026-08-01 --from x --reason r", "archive --older-than 90d --to x --operator mara", "restore --day 2026-08-01 --from x --operator mara", "verify --spool x", "verify --metrics http://127.0.0.1:1/metrics", "verify --try-dead-letters", "migrate",
		"where-is decision-logs/0/1 --since 2h", "where-is decision-logs/0/1 --spool x",
	} {
		r := (&world{bare: true}).call(append(strings.Fields(args), "--server", desk.url)...)
		if r.code != cli.Misuse || !strings.Contains(r.err, "database") || r.out != "" {
			t.Errorf("%s: exit %d, %s%s", args, r.code, r.out, r.err)
		}
		if by := desk.by(); by != "nobody" {
			t.Errorf("%s: the desk was asked", args)
		}
	}
}

func TestTarget_PlainMessages(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"logs", "why 4ca6f05b-55e4", "dlq list", "jobs list", "state alice", "flips", "stats", "report", "where-is 4ca6f05b", "dlq show a0a0a0", "jobs stop 3"} {
		desk := asking(t)
		r := (&world{bare: true}).call(append(strings.Fields(args), "--server", desk.url, "--token-file", tokenFile(t, "planted-token"))...)
		if r.code != cli.Failed || !strings.Contains(r.err, "this needs the role viewer") || !strings.Contains(r.err, "ask for it") || strings.Contains(r.out+r.err, "planted-token") {
			t.Errorf("%s: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
}

func TestContext_FileOfItsOwner(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	w := &world{bare: true, environ: []string{"XDG_CONFIG_HOME=" + home}, stdin: "token-in-clear\n"}
	file := filepath.Join(home, "docket", "config.yaml")
	token := tokenFile(t, "token-in-a-file")
	for _, args := range [][]string{{"add", "prod", "--server", "https://desk.example:8083", "--token-file", token}, {"add", "lab", "--server", "http://127.0.0.1:8083", "--token-stdin"}, {"use", "lab"}} {
		if r := w.call(append([]string{"context"}, args...)...); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "token-in-a-file") || !strings.Contains(string(text), token) || !strings.Contains(string(text), "token-in-clear") {
		t.Error(string(text), err)
	}
	for _, args := range [][]string{{}, {"--json"}, {"--wide"}} {
		r := w.call(append([]string{"context", "list"}, args...)...)
		if r.code != 0 || !strings.Contains(r.out, "prod") || strings.Contains(r.out, "token-in-clear") || strings.Contains(r.out, "token-in-a-file") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	}
	if r := w.call("context", "remove", "lab"); r.code != 0 {
		t.Error(r.err)
	}
	if r := w.call("context", "list", "--json"); strings.Contains(r.out, "lab") || strings.Contains(r.out, `"current": true`) {
		t.Error(r.out)
	}
	if err := os.WriteFile(file, []byte("contexts: [{name: x, token: planted-token, sevrer: y}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.call("context", "list"); r.code != 1 || strings.Contains(r.err, "planted-token") {
		t.Errorf("a broken file: exit %d, %s", r.code, r.err)
	}
}

// TestTarget_TokenOfAPipe: a tool that gives a token through a pipe gives it once, also to a command that names its caller first.
func TestTarget_TokenOfAPipe(t *testing.T) {
	t.Parallel()
	w := (&world{book: newBook(deadLetters()...)}).overDesk(t, "operator")
	token, err := os.ReadFile(w.token)
	if err != nil {
		t.Fatal(err)
	}
	w.token = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(w.token, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan result, 1)
	go func() { done <- w.call("dlq", "resolve", deadLetters()[0].ID, "--note", "x") }()
	give := func() {
		if err := os.WriteFile(w.token, token, 0o600); err != nil {
			t.Error(err)
		}
	}
	give()
	select {
	case r := <-done:
		if r.code != cli.Done || !strings.Contains(r.out, "RESOLVED") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for the token once more")
		give()
		<-done
	}
}
