package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

const shy = "hunter2marker"

func onDisk(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEffective_Sources(t *testing.T) {
	t.Parallel()
	secret := onDisk(t, "postgres://u:"+shy+"@db/x\n")
	file := onDisk(t, "kafka_topic: of-the-file\nlog_level: debug\ndatabase_url_file: "+secret+"\nkafka_sasl_password: "+shy+"\nspool_dir: \"\"\nhttp_addr:\n")
	environ := []string{FileVariable + "=" + file, "DOCKET_LOG_LEVEL=warn", "DOCKET_KAFKA_GROUP=", "DOCKET_HEADER_KEY=" + shy + shy + shy}
	got := map[string]Effective{}
	for _, e := range EffectiveOf(Consumer, environ) {
		got[e.Name] = e
	}
	for name, want := range map[string]struct {
		key, value string
		source     Source
		hidden     bool
	}{
		"DOCKET_KAFKA_TOPIC":         {"kafka_topic", "of-the-file", FromFile, false},
		"DOCKET_LOG_LEVEL":           {"log_level", "warn", FromEnvironment, false},
		"DOCKET_KAFKA_GROUP":         {"kafka_group", "docket", FromDefault, false},
		"DOCKET_HTTP_ADDR":           {"http_addr", ":8080", FromDefault, false},
		"DOCKET_DATABASE_URL":        {"database_url_file", secret, FromFile, false},
		"DOCKET_KAFKA_SASL_PASSWORD": {"kafka_sasl_password", "", FromFile, true},
		"DOCKET_HEADER_KEY":          {"header_key", "", FromEnvironment, true},
		"DOCKET_SPOOL_DIR":           {"spool_dir", "", FromFile, false},
		"DOCKET_KAFKA_TLS_CA":        {"kafka_tls_ca", "", Unset, false},
	} {
		if e := got[name]; e.Key != want.key || e.Value != want.value || e.Source != want.source || e.Hidden != want.hidden {
			t.Errorf("%s: %q %q %s hidden %v", name, e.Key, e.Value, e.Source, e.Hidden)
		}
	}
	if text := YAML(EffectiveOf(Consumer, environ)); strings.Contains(text, shy) {
		t.Errorf("shows a secret:\n%s", text)
	}
}

// The secrets are in files of their own, so the printed file alone has to give the same settings.
func TestEffective_PrintedFileIsTheSame(t *testing.T) {
	t.Parallel()
	url, key := onDisk(t, "postgres://u:"+shy+"@db/x"), onDisk(t, strings.Repeat("ab", 32))
	for p, environ := range map[Program][]string{
		Consumer:  {"DOCKET_DATABASE_URL_FILE=" + url, "DOCKET_LANES=urgent,bulk", "DOCKET_RETRY_PAUSES=1s,3s", "DOCKET_SPOOL_DIR=", "DOCKET_HEADER_KEY_FILE=" + key},
		Replayer:  {"DOCKET_DATABASE_URL_FILE=" + url, "DOCKET_LIMIT_ROWS=4500", "DOCKET_LIMIT_LOW_ROWS=3500", "DOCKET_LIMIT_CALENDAR=19-23=low:150"},
		Collector: {"DOCKET_COLLECTOR_ADDR=127.0.0.1:1", "DOCKET_LANES=urgent", "DOCKET_COLLECTOR_URGENT=verdict=denied,error;path=admin/*;label:tenant=acme", "DOCKET_COLLECTOR_DROP=/input/a b,/input/#c", "DOCKET_COLLECTOR_CLIENTS_FILE=/etc/docket/clients.json"},
		Desk:      {"DOCKET_DATABASE_URL_FILE=" + url, "DOCKET_DESK_RETRY_KINDS=", "DOCKET_STATES=true", "DOCKET_OPERATOR=mára: #1 \u202e", "DOCKET_DESK_API_ADDR="},
	} {
		want, _, err := LoadWith(p, environ, nil)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		printed := YAML(EffectiveOf(p, environ))
		got, warnings, err := LoadWith(p, []string{FileVariable + "=" + onDisk(t, printed)}, nil)
		if err != nil || len(warnings) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v\n%+v\n%+v\n%s", p, err, warnings, got, want, printed)
		}
		for i := range len(printed) {
			if printed[i] > '~' {
				t.Fatalf("%s: not ASCII: %q", p, printed)
			}
		}
	}
}

func TestEffective_AnyValueSurvivesYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		line := "key: " + plainYAML(value) + "  # file\n"
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(line), &document); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if got := document.Content[0].Content[1]; got.Value != value || got.Tag != "!!str" || strings.Count(line, "\n") != 1 {
			t.Fatalf("%q became %q %s", value, got.Value, got.Tag)
		}
	})
}

// The URL of a desk is printed, so none with a password may be valid.
func TestLoad_ServerWithPassword(t *testing.T) {
	t.Parallel()
	const url = "DOCKET_DATABASE_URL=postgres://u@db/x"
	for name, c := range map[string]struct {
		environ []string
		says    string
	}{
		"user and password": {[]string{"DOCKET_SERVER=https://me:" + shy + "@desk"}, "DOCKET_SERVER: the URL of the server must not hold a password"},
		"of a file":         {[]string{FileVariable + "=" + onDisk(t, "server: https://"+shy+"@desk\n")}, "DOCKET_SERVER: the URL of the server must not hold a password"},
		"query":             {[]string{"DOCKET_SERVER=https://desk?token=" + shy}, "must end with its path"},
		"no URL":            {[]string{"DOCKET_SERVER=me:" + shy + "@desk"}, "must be a URL"},
		"in clear":          {[]string{"DOCKET_SERVER=http://desk.example"}, "in clear"},
		"in clear, allowed": {[]string{"DOCKET_SERVER=http://desk.example", "DOCKET_SERVER_PLAIN=true"}, ""},
		"good":              {[]string{"DOCKET_SERVER=https://desk.example:8083/docket"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(Desk, append(c.environ, url))
			if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), shy)) {
				t.Errorf("got %v", err)
			}
			if _, _, err := Load(Consumer, append(c.environ, url)); err != nil {
				t.Errorf("the consumer has no such setting: %v", err)
			}
		})
	}
}
