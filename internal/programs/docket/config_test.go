package docket

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"docket/internal/programs/cli"
)

// configured writes a file with settings and returns its path.
func configured(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docket.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	right := "database_url: postgres://u:" + planted + "@db/x\ncollector_addr: 127.0.0.1:8085\n"
	wrong := "databse_url: postgres://u:" + planted + "@db/x\nlog_level: loud\ndesk_alert_urls: " + planted + "\ncollector_key: nobody\n"
	for name, c := range map[string]struct {
		text, args string
		environ    []string
		code       int
		lines      int // of complaints
		says       string
	}{
		"right":              {right, "", nil, cli.Done, 0, "the settings are valid for consume, replay, collect, desk\n"},
		"right for one":      {right, "collect", nil, cli.Done, 0, "the settings are valid for collect\n"},
		"nothing needed":     {"# nothing\n", "collect", nil, cli.Done, 0, "valid for collect"},
		"a database missing": {"# nothing\n", "", nil, cli.Misuse, 1, "DOCKET_DATABASE_URL: is required"},
		"all complaints":     {wrong, "", nil, cli.Misuse, 5, `"databse_url": there is no such setting; did you mean database_url?`},
		"environment wins":   {"log_level: loud\n", "collect", []string{"DOCKET_LOG_LEVEL=warn"}, cli.Done, 0, "valid for collect"},
		"environment wrong":  {right, "consume desk", []string{"DOCKET_LOG_LEVEL=loud"}, cli.Misuse, 1, "DOCKET_LOG_LEVEL: "},
		"no such program":    {right, "consmue", nil, cli.Misuse, 2, "did you mean consume?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := configured(t, c.text)
			args := strings.Fields(c.args)
			for _, call := range [][]string{
				append([]string{"config", "validate", "--config", path}, args...), append([]string{"--config=" + path, "config", "validate"}, args...),
			} {
				got := callAs("docket", c.environ, nil, call...)
				if got.Code != c.code || !strings.Contains(got.Out+got.Err, c.says) || strings.Count(got.Err, "\n") != c.lines || strings.Contains(got.Out+got.Err, planted) {
					t.Errorf("%v: exit %d\n%s%s", call, got.Code, got.Out, got.Err)
				}
			}
		})
	}
}

// TestConfig_ValidateAsTheDesk: settings that the desk refuses at its start are not valid.
func TestConfig_ValidateAsTheDesk(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := configured(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	key := configured(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	text := "database_url: postgres://u@db/x\ndesk_api_tls_cert: " + cert + "\ndesk_api_tls_key: " + key + "\ndesk_api_client_ca: " + cert + "\ndesk_api_clients: mara:operator\n"
	for role, code := range map[string]int{"viewer": cli.Misuse, "operator": cli.Done} {
		path := configured(t, text+"desk_api_tokens: mara:"+role+":0123456789abcdef\n")
		got := callAs("docket", nil, nil, "config", "validate", "desk", "--config", path)
		if got.Code != code || (code == cli.Misuse) != strings.Contains(got.Err, "DOCKET_DESK_API_CLIENTS: mara has one role by token and another by certificate") {
			t.Errorf("%s: exit %d\n%s%s", role, got.Code, got.Out, got.Err)
		}
	}
}

// TestConfig_PipeWithRights: a pipe with the rights of clients is left to the program, and the answer says so.
func TestConfig_PipeWithRights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"opa":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const line = "warning: DOCKET_COLLECTOR_CLIENTS_FILE: this file is a pipe and was left unread for the program: its rights were not checked\n"
	for path, want := range map[string]string{pipe: line, file: ""} {
		path := configured(t, "collector_addr: 127.0.0.1:8085\ncollector_tokens: opa:0123456789abcdef\ncollector_clients_file: "+path+"\n")
		for _, command := range []string{"validate", "print"} {
			if got := callAs("docket", nil, nil, "config", command, "collect", "--config", path); got.Code != cli.Done || got.Err != want {
				t.Errorf("%s: exit %d\n%s%s, want %q", command, got.Code, got.Out, got.Err, want)
			}
		}
	}
}

// TestConfig_OfEveryProgram gives the file by the flag, and by the variable to links, which have no such flag.
func TestConfig_OfEveryProgram(t *testing.T) {
	t.Parallel()
	path := configured(t, "log_level: loud\nhttp_addr: 127.0.0.1:1\n")
	for _, call := range []string{"consume", "consume run", "replay --once", "collect", "desk", "logs", "dlq list", "migrate", "check"} {
		for _, got := range []answer{
			callAs("docket", nil, nil, append(strings.Fields(call), "--config", path)...), callAs("docket", []string{"DOCKET_CONFIG=" + path}, nil, strings.Fields(call)...),
		} {
			if got.Code != cli.Misuse || !strings.Contains(got.Err, "DOCKET_LOG_LEVEL: ") {
				t.Errorf("%s: exit %d\n%s%s", call, got.Code, got.Out, got.Err)
			}
		}
	}
	for _, link := range []string{"consumer", "parking-replayer", "collector"} {
		if got := callAs(link, []string{"DOCKET_CONFIG=" + path}, nil); got.Code != cli.Misuse || !strings.Contains(got.Err, "DOCKET_LOG_LEVEL: ") {
			t.Errorf("%s: exit %d\n%s", link, got.Code, got.Err)
		}
		if got := callAs(link, []string{"DOCKET_CONFIG=" + path}, nil, "health"); got.Code != cli.Failed || !strings.Contains(got.Err, "127.0.0.1:1") {
			t.Errorf("%s health: exit %d\n%s", link, got.Code, got.Err)
		}
		if got := callAs(link, nil, nil, "--config", path); got.Code != cli.Misuse || !strings.Contains(got.Err, "unknown flag") {
			t.Errorf("%s: exit %d\n%s", link, got.Code, got.Err)
		}
	}
}

// TestConfig_PrintIsAFile prints settings, and reads the print as a file. Secrets are not in it.
func TestConfig_PrintIsAFile(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	environ := []string{"DOCKET_DATABASE_URL=postgres://u:" + planted + "@db/x", "DOCKET_LANES=urgent", "DOCKET_COLLECTOR_ADDR=127.0.0.1:8085", "DOCKET_HTTP_ADDR=127.0.0.1:1"}
	for _, program := range []string{"consume", "replay", "collect", "desk"} {
		first := callAs("docket", environ, nil, "config", "print", program)
		if first.Code != cli.Done || first.Err != "" || !strings.Contains(first.Out, "http_addr: 127.0.0.1:1  # environment\n") || strings.Contains(first.Out, planted) {
			t.Fatalf("%s: exit %d\n%s%s", program, first.Code, first.Out, first.Err)
		}
		if wants := "# database_url: set, not shown (environment)\n"; strings.Contains(first.Out, wants) == (program == "collect") {
			t.Errorf("%s: %s", program, first.Out)
		}
		again := callAs("docket", environ[:1], nil, "config", "print", program, "--config", configured(t, first.Out))
		if again.Code != cli.Done || strings.ReplaceAll(again.Out, "# file\n", "# default\n") != strings.ReplaceAll(first.Out, "# environment\n", "# default\n") {
			t.Errorf("%s: exit %d\n%s%s", program, again.Code, again.Out, again.Err)
		}
		if json := callAs("docket", environ, nil, "config", "print", program, "--json"); json.Code != cli.Done || strings.Contains(json.Out, planted) || !strings.Contains(json.Out, `"source": "environment"`) {
			t.Errorf("%s: exit %d\n%s%s", program, json.Code, json.Out, json.Err)
		}
	}
	server := []string{"DOCKET_SERVER=https://me:" + planted + "@desk"}
	for _, args := range [][]string{{"config", "print", "desk"}, {"config", "print", "desk", "--json"}, {"config", "validate"}} {
		got := callAs("docket", append(server, environ[:1]...), nil, args...)
		if got.Code != cli.Misuse || strings.Contains(got.Out+got.Err, planted) || !strings.Contains(got.Err, "DOCKET_SERVER: ") {
			t.Errorf("%v: exit %d\n%s%s", args, got.Code, got.Out, got.Err)
		}
	}
	wrong := callAs("docket", []string{"DOCKET_LOG_LEVEL=loud", "DOCKET_LANES=slow"}, nil, "config", "print", "consume")
	if wrong.Code != cli.Misuse || wrong.Out != "" || strings.Count(wrong.Err, "\n") != 3 {
		t.Errorf("exit %d\n%s%s", wrong.Code, wrong.Out, wrong.Err)
	}
}
