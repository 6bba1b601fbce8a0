package tree

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/programs/cli"
)

// contextsIn is a world whose file of contexts has a text and a mode.
func contextsIn(t *testing.T, text string, mode os.FileMode) *world {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "docket", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return &world{bare: true, environ: []string{"XDG_CONFIG_HOME=" + home}}
}

// A file that was written by hand can hold a password in a URL, and no command prints it.
func TestContext_PrintsNoPassword(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"https://mara:" + planted + "@desk.example", "https://" + planted + "@desk.example", "https://desk.example/?token=" + planted, "https://desk.example/#" + planted, "https://mara:" + planted + "@desk.example:port"} {
		w := contextsIn(t, "contexts: [{name: x, server: '"+server+"'}]\n", 0o600)
		for _, args := range []string{"context list", "context list --json", "context list -o csv", "context list -o yaml", "context use x", "dlq groups", "context list --wide"} {
			r := w.call(strings.Fields(args)...)
			if strings.Contains(r.out+r.err, planted) {
				t.Errorf("%s: %s prints %s%s", server, args, r.out, r.err)
			}
			if args == "context list" && (r.code != 0 || !strings.Contains(r.out, "desk.example") && !strings.Contains(r.out, "(not a URL)")) {
				t.Errorf("%s: exit %d, %s", server, r.code, r.out)
			}
		}
		if r := w.call("context", "add", "y", "--server", server); r.code != cli.Misuse || strings.Contains(r.out+r.err, planted) {
			t.Errorf("%s is added: exit %d, %s", server, r.code, r.err)
		}
	}
	plain := contextsIn(t, "contexts: [{name: x, server: 'https://desk.example:8083/docket'}]\n", 0o600)
	if r := plain.call("context", "list"); !strings.Contains(r.out, "https://desk.example:8083/docket") {
		t.Error(r.out)
	}
}

func TestContext_ModeOfFile(t *testing.T) {
	t.Parallel()
	const inFile, inClear = "current: x\ncontexts: [{name: x, server: 'https://desk.example', token_file: /t}]\n", "current: x\ncontexts: [{name: x, server: 'https://desk.example', token: abc}]\n"
	for _, c := range []struct {
		text  string
		mode  os.FileMode
		wants string // empty: it is read
	}{
		{inFile, 0o600, ""}, {inFile, 0o644, ""}, {inFile, 0o400, ""}, {inFile, 0o620, "can change"}, {inFile, 0o602, "can change"}, {inFile, 0o666, "can change"},
		{inClear, 0o600, ""}, {inClear, 0o640, "can read the token"}, {inClear, 0o604, "can read the token"}, {inClear, 0o611, ""},
	} {
		r := contextsIn(t, c.text, c.mode).call("context", "list")
		if (r.code == 0) != (c.wants == "") || !strings.Contains(r.err, c.wants) || c.wants != "" && !strings.Contains(r.err, "chmod 600 ") {
			t.Errorf("%o: exit %d, %s", c.mode, r.code, r.err)
		}
		if r := contextsIn(t, c.text, c.mode).call("dlq", "groups"); c.wants != "" && (r.code != cli.Misuse || !strings.Contains(r.err, c.wants)) {
			t.Errorf("%o: exit %d, %s", c.mode, r.code, r.err)
		}
	}
}

// General flags before the command do not take those of docket context.
func TestContext_FlagsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"--color never", "--color=never", "--no-pager", "-o json", "--config /dev/null", "--context context", "--server https://context.example"} {
		w := contextsIn(t, "", 0o600)
		if r := w.call(append(strings.Fields(before), "context", "add", "lab", "--server", "https://desk.example")...); r.code != 0 || !strings.Contains(r.err, "context lab is added") {
			t.Errorf("%s: exit %d, %s", before, r.code, r.err)
		}
		if r := w.call("context", "list"); !strings.Contains(r.out, "https://desk.example") {
			t.Errorf("%s: %s", before, r.out)
		}
	}
	for args, want := range map[string]string{
		"--server context logs": "logs", "logs context": "logs", "-- context": "", "--wide context list": "context", "-o=json context": "context", "--server=x context": "context", "--color": "", "": "",
	} {
		if got := commandOf(strings.Fields(args)); got != want {
			t.Errorf("%q is the command of %q", got, args)
		}
	}
}

// An older desk answers, and one line says that its answers may lack parts.
func TestDesk_OlderIsTold(t *testing.T) {
	t.Parallel()
	for header, told := range map[string]bool{"": true, "0": true, "1": false, "99": false, "x": true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set(api.LevelHeader, header)
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{}) // the client is gone
		}))
		t.Cleanup(server.Close)
		w := &world{bare: true}
		r := w.call("dlq", "groups", "--server", server.URL)
		want := 0
		if told {
			want = 1
		}
		if n := strings.Count(r.err, "is older than this program"); n != want {
			t.Errorf("level %q is told %d times: %s", header, n, r.err)
		}
	}
}
