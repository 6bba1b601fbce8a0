package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configured writes a file with settings and returns the variable that names it.
func configured(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docket.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return FileVariable + "=" + path
}

func TestFile(t *testing.T) {
	t.Parallel()
	file := configured(t, `
# the consumer of the shop
kafka_brokers: [kafka-1:9092, "kafka-2:9092"]
kafka_topic: shop
database_url: postgres://u:hunter2marker@db/x
batch_max_records: 100
batch_max_wait: 500ms
auto_migrate: true
spool_dir: ""
log_level:
DOCKET_LOG_FORMAT: console
`)
	s, warnings, err := Load(Consumer, []string{file, "DOCKET_KAFKA_TOPIC=other", "DOCKET_BATCH_MAX_RECORDS="})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if strings.Join(s.KafkaBrokers, " ") != "kafka-1:9092 kafka-2:9092" || s.KafkaTopic != "other" || s.BatchMaxRecords != 100 || s.BatchMaxWait != 500*time.Millisecond ||
		!s.AutoMigrate || s.SpoolDir != "" || s.LogLevel != "info" || s.LogFormat != "console" || string(s.DatabaseURL) != "postgres://u:hunter2marker@db/x" {
		t.Errorf("%+v", s)
	}
	if got := Lookup(Consumer, []string{file}, "DOCKET_KAFKA_TOPIC"); got != "shop" {
		t.Errorf("Lookup = %s", got)
	}
}

// TestFile_Secret gives a secret in one place as text and in the other as a file: they are the same setting.
func TestFile_Secret(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(secret, []byte("postgres://u@fromfile/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    string
		environ string
		want    string
	}{
		"text wins over a file":   {"database_url_file: " + secret, "DOCKET_DATABASE_URL=postgres://u@environment/x", "postgres://u@environment/x"},
		"a file wins over text":   {"database_url: postgres://u@text/x", "DOCKET_DATABASE_URL_FILE=" + secret, "postgres://u@fromfile/x"},
		"a file is read":          {"database_url_file: " + secret, "DOCKET_DATABASE_URL=", "postgres://u@fromfile/x"},
		"both are in the setting": {"database_url_file: " + secret + "\ndatabase_url: postgres://u@text/x", "DOCKET_LOG_LEVEL=info", ""},
	} {
		s, _, err := Load(Consumer, []string{configured(t, c.text), c.environ})
		if (err != nil) != (c.want == "") || string(s.DatabaseURL) != c.want {
			t.Errorf("%s: %q, %v", name, string(s.DatabaseURL), err)
		}
	}
}

// TestFile_NameLikeThatOfASecretsFile: the name of this setting ends like that of a file with a secret.
func TestFile_NameLikeThatOfASecretsFile(t *testing.T) {
	t.Parallel()
	file := configured(t, "collector_clients_file: of-the-file\n")
	for environ, want := range map[string]string{"DOCKET_COLLECTOR_CLIENTS_FILE=of-the-environment": "of-the-environment", "DOCKET_COLLECTOR_CLIENTS_FILE=": "of-the-file"} {
		s, _, err := Load(Collector, []string{file, environ})
		if err != nil || s.CollectorClientsFile != want {
			t.Errorf("%s: %q, want %q, %v", environ, s.CollectorClientsFile, want, err)
		}
		for _, e := range EffectiveOf(Collector, []string{file, environ}) {
			if e.Name == "DOCKET_COLLECTOR_CLIENTS_FILE" && e.Value != want {
				t.Errorf("%s is shown as %q of %s, want %q", environ, e.Value, e.Source, want)
			}
		}
	}
}

func TestFile_Complaints(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	for name, c := range map[string]struct {
		text string
		want []string // parts of each complaint, in their order
	}{
		"all at once": {"kafka_broker: x\nkafka_topic: a/b\nlog_level: loud\nfrobnicate: " + planted + "\n", []string{
			`"kafka_broker": there is no such setting; did you mean kafka_brokers? (line 1 of the file)`, `"frobnicate": there is no such setting; check its spelling`,
			"DOCKET_KAFKA_TOPIC: ", "DOCKET_DATABASE_URL: is required", "DOCKET_LOG_LEVEL: ",
		}},
		"not YAML":           {"database_url: 'x\n", []string{"DOCKET_CONFIG: the file is not YAML", "is required"}},
		"an unknown anchor":  {"database_url: *" + planted + "\n", []string{"DOCKET_CONFIG: the file is not YAML", "is required"}},
		"a list":             {"- a\n", []string{"must hold lines like", "is required"}},
		"a map":              {"database_url: {a: " + planted + "}\n", []string{"DOCKET_DATABASE_URL: must be one value"}},
		"twice":              {"log_level: info\nlog_level: warn\ndatabase_url: postgres://u@h/x\n", []string{"DOCKET_LOG_LEVEL: is set twice (line 2 of the file)"}},
		"two documents":      {"log_level: info\n---\ndatabase_url: postgres://u:" + planted + "@h/x\n", []string{"DOCKET_CONFIG: the file has a second document (line 3)", "is required"}},
		"a broken document":  {"log_level: info\n---\nx: '" + planted + "\n", []string{"DOCKET_CONFIG: the file is not YAML", "is required"}},
		"a list for one":     {"spool_dir: [a, b]\ndatabase_url: [postgres://u@h/x]\n", []string{"DOCKET_SPOOL_DIR: must be one value (line 1 of the file)"}},
		"another file":       {"config: x\ndatabase_url: postgres://u@h/x\n", []string{`"config": there is no such setting`}},
		"no file for plain":  {"log_level_file: x\ndatabase_url: postgres://u@h/x\n", []string{`"log_level_file": there is no such setting`}},
		"an escape in a key": {"\"\\x1b[31m\": x\ndatabase_url: postgres://u@h/x\n", []string{`"\x1b[31m": there is no such setting`}},
	} {
		_, _, err := Load(Consumer, []string{configured(t, c.text)})
		if err == nil {
			t.Errorf("%s: no complaint", name)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) || strings.Contains(err.Error(), planted) {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: line %d lacks %q:\n%v", name, i, want, err)
			}
		}
	}
	for _, path := range []string{t.TempDir(), "/does/not/exist"} {
		if _, _, err := Load(Collector, []string{FileVariable + "=" + path}); err == nil || !strings.HasPrefix(err.Error(), "DOCKET_CONFIG: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, text := range []string{"# nothing yet\n", "", "---\n", "log_level: info\n---\n", "---\nlog_level: info\n...\n"} {
		if _, warnings, err := Load(Collector, []string{configured(t, text), "DOCKET_LOG_LEVEL=info"}); err != nil || len(warnings) > 0 {
			t.Errorf("%q: %v, %v", text, err, warnings)
		}
	}
}
