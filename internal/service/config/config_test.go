package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/record/envelope"
)

var update = flag.Bool("update", false, "write docs/settings.md again")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const database = "DOCKET_DATABASE_URL=postgres://docket:hunter2@db/docket"

func TestDefaults_AreEnough(t *testing.T) {
	t.Parallel()
	s, warnings, err := Load(Consumer, []string{database, "HOME=/root", "DOCKET_KAFKA_TOPIC="})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load: %v, warnings %v", err, warnings)
	}
	want := Settings{
		KafkaBrokers: []string{"localhost:9092"}, KafkaTopic: "decision-logs", KafkaDLQTopic: "decision-logs-dlq",
		KafkaParkingTopic: "decision-logs-parking", KafkaParkingDLQTopic: "decision-logs-parking-dlq",
		KafkaGroup: "docket", ParkingGroup: "docket-parking", KafkaSessionTimeout: 45 * time.Second, KafkaRebalanceTimeout: 90 * time.Second,
		DatabaseURL:     "postgres://docket:hunter2@db/docket",
		PartitionsAhead: 7,
		BatchMaxRecords: 5000, BatchMaxBytes: 8 << 20, BatchMaxWait: 200 * time.Millisecond, MaxRecordBytes: 16 << 20, MaxRefused: 100,
		StoreTimeout: 8 * time.Second, RetryPauses: []time.Duration{time.Second, 2 * time.Second}, ParkBatches: 3,
		ProbeInterval: time.Second, PublishTimeout: 10 * time.Second,
		ParkingBackoff: time.Minute, ParkingMaxBackoff: time.Hour, ParkingMaxAttempts: 5, ParkingLookahead: 10000,
		SpoolDir: "spool/consumer", SpoolMaxBytes: 1 << 30, SpoolMaxAge: 24 * time.Hour, SpoolOnFull: "hold",
		HTTPAddr: ":8080", LogLevel: "info", LogFormat: "json", ShutdownTimeout: 25 * time.Second, DeskFourEyes: true,
		UrgentBatchMaxRecords: 500, UrgentBatchMaxWait: 20 * time.Millisecond,
	}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(Settings{})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	r, _, err := Load(Replayer, []string{database})
	if err != nil || r.SpoolDir != "spool/parking-replayer" || r.HTTPAddr != ":8081" {
		t.Errorf("the replayer cannot run beside the consumer: spool %q, http %q, %v", r.SpoolDir, r.HTTPAddr, err)
	}
}

func TestValues_AreRead(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Consumer, []string{
		database, "DOCKET_KAFKA_BROKERS=a:1, b:2", "DOCKET_RETRY_PAUSES=10ms,20ms,1s", "DOCKET_BATCH_MAX_BYTES=10MB",
		"DOCKET_AUTO_MIGRATE=true", "DOCKET_SPOOL_DIR=", "DOCKET_PARK_BATCHES=0", "DOCKET_HTTP_ADDR=127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.KafkaBrokers, []string{"a:1", "b:2"}) || len(s.RetryPauses) != 3 || s.RetryPauses[1] != 20*time.Millisecond ||
		s.BatchMaxBytes != 10_000_000 || !s.AutoMigrate || s.ParkBatches != 0 || s.HTTPAddr != "127.0.0.1:0" {
		t.Errorf("read as %+v", s)
	}
	if s.SpoolDir != "" {
		t.Errorf("an empty DOCKET_SPOOL_DIR means no spool, got %q", s.SpoolDir)
	}
}

func TestComplaints_AllAtOnceByVariable(t *testing.T) {
	t.Parallel()
	_, _, err := Load(Consumer, []string{
		"DOCKET_KAFKA_BROKERS=localhost", "DOCKET_KAFKA_DLQ_TOPIC=decision-logs", "DOCKET_BATCH_MAX_RECORDS=many", "DOCKET_BATCH_MAX_BYTES=8",
		"DOCKET_STORE_TIMEOUT=8", "DOCKET_AUTO_MIGRATE=yes", "DOCKET_LOG_FORMAT=xml", "DOCKET_PARKING_BACKOFF=2h",
		"DOCKET_HTTP_ADDR=8080", "DOCKET_KAFKA_SASL_USERNAME=me", "DOCKET_PARKING_MAX_ATTEMPTS=0",
	})
	var all Complaints
	if !errors.As(err, &all) {
		t.Fatalf("Load: %v", err)
	}
	got := []string{}
	for _, c := range all {
		got = append(got, c.Variable)
		if c.Text == "" || strings.Contains(c.Text, "\n") {
			t.Errorf("%s: %q is not one line", c.Variable, c.Text)
		}
	}
	want := []string{
		"DOCKET_KAFKA_BROKERS", "DOCKET_KAFKA_DLQ_TOPIC", "DOCKET_KAFKA_SASL_MECHANISM", "DOCKET_KAFKA_SASL_PASSWORD", "DOCKET_DATABASE_URL",
		"DOCKET_AUTO_MIGRATE", "DOCKET_BATCH_MAX_RECORDS", "DOCKET_BATCH_MAX_BYTES", "DOCKET_STORE_TIMEOUT", "DOCKET_PARKING_BACKOFF",
		"DOCKET_PARKING_MAX_ATTEMPTS", "DOCKET_HTTP_ADDR", "DOCKET_LOG_FORMAT",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s\n%v", diff, err)
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != len(want) {
		t.Errorf("%d lines for %d complaints", lines, len(want))
	}
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		want string // variable and a part of the text
	}{
		"session as long as rebalance":         {[]string{"DOCKET_KAFKA_SESSION_TIMEOUT=90s"}, "DOCKET_KAFKA_SESSION_TIMEOUT: 1m30s is not shorter"},
		"shutdown longer than the group waits": {[]string{"DOCKET_SHUTDOWN_TIMEOUT=72s"}, "DOCKET_SHUTDOWN_TIMEOUT: 1m12s does not fit"},
		"retry budget too large":               {[]string{"DOCKET_STORE_TIMEOUT=30s"}, "DOCKET_KAFKA_REBALANCE_TIMEOUT: a batch may take 1m48s"},
		"retry budget tells the way out":       {[]string{"DOCKET_STORE_TIMEOUT=30s"}, "raise it to 2m15s"},
		"retry budget counts pauses":           {[]string{"DOCKET_RETRY_PAUSES=20s,20s"}, "DOCKET_KAFKA_REBALANCE_TIMEOUT"},
		"pause out of range":                   {[]string{"DOCKET_RETRY_PAUSES=1s,-2s"}, "DOCKET_RETRY_PAUSES: \"1s,-2s\" is out of range; allowed: 0s to 5m"},
		"pauses too many":                      {[]string{"DOCKET_RETRY_PAUSES=0s,0s,0s,0s,0s,0s,0s,0s,0s,0s,0s"}, "DOCKET_RETRY_PAUSES: has 11"},
		"two homes on one topic":               {[]string{"DOCKET_KAFKA_DLQ_TOPIC=a", "DOCKET_KAFKA_PARKING_DLQ_TOPIC=a"}, "DOCKET_KAFKA_PARKING_DLQ_TOPIC: \"a\" is already the topic of DOCKET_KAFKA_DLQ_TOPIC"},
		"source is a home":                     {[]string{"DOCKET_KAFKA_PARKING_TOPIC=decision-logs"}, "DOCKET_KAFKA_PARKING_TOPIC: \"decision-logs\" is already the topic of DOCKET_KAFKA_TOPIC"},
		"bad topic name":                       {[]string{"DOCKET_KAFKA_TOPIC=a b"}, "DOCKET_KAFKA_TOPIC: \"a b\" is not a topic name"},
		"one group for both":                   {[]string{"DOCKET_PARKING_GROUP=docket"}, "DOCKET_PARKING_GROUP"},
		"lookahead below a batch":              {[]string{"DOCKET_PARKING_LOOKAHEAD=10"}, "DOCKET_PARKING_LOOKAHEAD: 10 is less than DOCKET_BATCH_MAX_RECORDS (5000)"},
		"back-off above its limit":             {[]string{"DOCKET_PARKING_MAX_BACKOFF=1s"}, "DOCKET_PARKING_BACKOFF: 1m0s is longer"},
		"spool below a batch":                  {[]string{"DOCKET_SPOOL_MAX_BYTES=1MiB"}, "DOCKET_SPOOL_MAX_BYTES: 1MiB is less than DOCKET_BATCH_MAX_BYTES (8MiB)"},
		"login without password":               {[]string{"DOCKET_KAFKA_SASL_MECHANISM=PLAIN", "DOCKET_KAFKA_SASL_USERNAME=u"}, "DOCKET_KAFKA_SASL_PASSWORD: is missing"},
		"unknown mechanism":                    {[]string{"DOCKET_KAFKA_SASL_MECHANISM=GSSAPI", "DOCKET_KAFKA_SASL_USERNAME=u", "DOCKET_KAFKA_SASL_PASSWORD=p"}, "DOCKET_KAFKA_SASL_MECHANISM: \"GSSAPI\" is not a choice; allowed: PLAIN"},
		"certificate authority while TLS off":  {[]string{"DOCKET_KAFKA_TLS_CA=" + junk}, "DOCKET_KAFKA_TLS_CA: is set while DOCKET_KAFKA_TLS is false"},
		"certificate authority missing":        {[]string{"DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CA=" + dir + "/none"}, "DOCKET_KAFKA_TLS_CA: the file cannot be read (no such file or directory)"},
		"certificate authority is junk":        {[]string{"DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CA=" + junk}, "DOCKET_KAFKA_TLS_CA: the file holds no certificate"},
		"certificate without key":              {[]string{"DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CERT=" + junk}, "DOCKET_KAFKA_TLS_KEY: is missing"},
		"key without certificate":              {[]string{"DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_KEY=" + junk}, "DOCKET_KAFKA_TLS_CERT: is missing"},
		"key file missing":                     {[]string{"DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CERT=" + junk, "DOCKET_KAFKA_TLS_KEY=" + dir + "/none"}, "DOCKET_KAFKA_TLS_KEY: the file cannot be read"},
		"certificate is junk":                  {[]string{"DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CERT=" + junk, "DOCKET_KAFKA_TLS_KEY=" + junk}, "DOCKET_KAFKA_TLS_CERT: certificate and key are not a pair"},
		"secret twice":                         {[]string{"DOCKET_DATABASE_URL_FILE=" + junk}, "DOCKET_DATABASE_URL: is set together with DOCKET_DATABASE_URL_FILE"},
		"key of headers too short":             {[]string{"DOCKET_HEADER_KEY=short"}, "DOCKET_HEADER_KEY: a key has less than 32 bytes; make one with: openssl rand -hex 32"},
		"key of headers blank":                 {[]string{"DOCKET_HEADER_KEY= \n\t"}, "DOCKET_HEADER_KEY: has no key; make one with: openssl rand -hex 32"},
		"secret's file empty":                  {[]string{"DOCKET_KAFKA_SASL_PASSWORD_FILE=" + empty}, "DOCKET_KAFKA_SASL_PASSWORD_FILE: the file is empty"},
		"secret's file missing":                {[]string{"DOCKET_KAFKA_SASL_PASSWORD_FILE=" + dir + "/none"}, "DOCKET_KAFKA_SASL_PASSWORD_FILE: the file cannot be read (no such file or directory)"},
		"secret's file a directory":            {[]string{"DOCKET_KAFKA_SASL_PASSWORD_FILE=" + dir}, "DOCKET_KAFKA_SASL_PASSWORD_FILE: is a directory"},
		"file for what is no secret":           {[]string{"DOCKET_LOG_LEVEL_FILE=" + junk}, "DOCKET_LOG_LEVEL_FILE: only a secret"},
		"slip of the pen":                      {[]string{"DOCKET_BATCH_MAX_RECORD=5"}, "DOCKET_BATCH_MAX_RECORD: there is no such setting; did you mean DOCKET_BATCH_MAX_RECORDS?"},
		"slip of the pen in a file's variable": {[]string{"DOCKET_DATABASE_URLFILE=x"}, "did you mean DOCKET_DATABASE_URL_FILE?"},
		"long values are cut":                  {[]string{"DOCKET_PARK_BATCHES=" + strings.Repeat("9", 500)}, strings.Repeat("9", 40) + "...\" is not a whole number"},
		"control characters stay on the line":  {[]string{"DOCKET_LOG_LEVEL=a\x1b[31m\nb"}, `"a\x1b[31m\nb" is not a choice`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{database}, c.env...)
			_, _, err := Load(Consumer, env)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLoad_ForeignVariables(t *testing.T) {
	t.Parallel()
	_, warnings, err := Load(Consumer, []string{
		database, "DOCKET_PORT=tcp://10.0.0.1:80", "DOCKET_SERVICE_HOST=10.0.0.1", "DOCKET_PORT_8080_TCP_ADDR=10.0.0.1",
		"DOCKET_CONSUMER_SERVICE_PORT_HTTP=80", "DOCKET_E2E_KEEP=1", "DOCKETX=1",
	})
	if err != nil {
		t.Fatalf("a Service called docket stops the program: %v", err)
	}
	if len(warnings) != 1 || warnings[0].Variable != "DOCKET_E2E_KEEP" {
		t.Errorf("warnings %v", warnings)
	}
}

func TestSecret_NeverShows(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	for name, env := range map[string][]string{
		"URL that cannot be read": {"DOCKET_DATABASE_URL=postgres://u:" + planted + "%zz@db/x"},
		"URL of another kind":     {"DOCKET_DATABASE_URL=mysql://u:" + planted + "@db/x"},
		"no URL":                  {"DOCKET_DATABASE_URL=" + planted},
		"in the brokers":          {database, "DOCKET_KAFKA_BROKERS=kafka://u:" + planted + "@b:1"},
		"as a file's path":        {"DOCKET_DATABASE_URL_FILE=postgres://u:" + planted + "@db/x"},
		"both":                    {"DOCKET_DATABASE_URL=" + planted, "DOCKET_DATABASE_URL_FILE=" + planted},
		"beside something wrong":  {"DOCKET_KAFKA_SASL_PASSWORD=" + planted, "DOCKET_PARK_BATCHES=x"},
		"in a misspelt variable":  {database, "DOCKET_KAFKA_SASL_PASSWORDS=" + planted},
	} {
		_, warnings, err := Load(Consumer, env)
		if err == nil {
			t.Errorf("%s: no complaint", name)
		}
		if text := fmt.Sprint(err, warnings); strings.Contains(text, planted) {
			t.Errorf("%s: the secret shows in %s", name, text)
		}
	}
	s, _, err := Load(Consumer, []string{"DOCKET_DATABASE_URL=postgres://u:" + planted + "@db/x"})
	if err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%s %q %x", s.DatabaseURL, s.DatabaseURL, s.DatabaseURL), string(j)} {
		if strings.Contains(text, planted) || strings.Contains(text, fmt.Sprintf("%x", planted)) {
			t.Errorf("the secret shows in %s", text)
		}
	}
	if s.DatabaseURL.Reveal() != "postgres://u:"+planted+"@db/x" {
		t.Error("the secret got lost")
	}
}

func TestSecret_FromFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte("postgres://u:p @db/x\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Load(Consumer, []string{"DOCKET_DATABASE_URL_FILE=" + path})
	if err == nil {
		t.Error("a blank inside a URL was taken")
	}
	if err := os.WriteFile(path, []byte("host=db user=u password='p q'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, err := Load(Consumer, []string{"DOCKET_DATABASE_URL_FILE=" + path, "DOCKET_DATABASE_URL="})
	if err != nil || s.DatabaseURL.Reveal() != "host=db user=u password='p q'" {
		t.Errorf("read %q, %v", s.DatabaseURL.Reveal(), err)
	}
}

// TestSettings_HeaderKeys: a file holds the newest key and the one before.
func TestSettings_HeaderKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	older := strings.Repeat("old ", 8) + "key"
	if err := os.WriteFile(path, []byte(strings.Repeat("new ", 8)+"key\n"+older+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for program, uses := range map[Program]string{Consumer: "DOCKET_DATABASE_URL=postgres://u@db/x", Replayer: "DOCKET_DATABASE_URL=postgres://u@db/x", Desk: "DOCKET_DATABASE_URL=postgres://u@db/x", Collector: "DOCKET_LOG_LEVEL=info"} {
		s, _, err := Load(program, []string{"DOCKET_HEADER_KEY_FILE=" + path, "DOCKET_KAFKA_BROKERS=localhost:9092", uses})
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		before, err := envelope.ParseKeys(older)
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Value: []byte("{}")}
		before.Sign(r)
		if !s.HeaderKeys().Prove(r) {
			t.Errorf("%s: the key before is not believed", program)
		}
		s.HeaderKeys().Sign(r)
		if before.Prove(r) {
			t.Errorf("%s: signed with the key before", program)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"512MiB": 512 << 20, "1KiB": 1024, "3GiB": 3 << 30, "1TiB": 1 << 40, "7B": 7, "10MB": 10_000_000, "1kB": 1000, "1KB": 1000, "2 GB": 2_000_000_000, "0B": 0,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "512", "MiB", "-1MiB", "1.5GiB", "9999999TiB", "1 mib", "1MiBs", "+1B", "0x1B"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
	for _, s := range []Size{1, 1023, 1024, 8 << 20, 1 << 30, 10_000_000, 0} {
		if back, err := ParseSize(s.String()); err != nil || back != s {
			t.Errorf("%d written as %s reads as %d, %v", int64(s), s, back, err)
		}
	}
}

// unplain finds words and beginnings of sentences that a text for operators may not have.
var unplain = regexp.MustCompile(`(?i:\b(anew|mend(s|ed)?|go(es)? on|lies|stands?|sake|of ours|whoever|is no|are no|for ever)\b)|` +
	`(^|[.;] )(What|Who|That which|Of which|Each of which)\b`)

const mostWords = 25 // of a sentence

func TestTable_PlainTexts(t *testing.T) {
	t.Parallel()
	for _, s := range Table() {
		if words := unplain.FindString(s.Text); words != "" {
			t.Errorf("%s has %q: %s", s.Name, words, s.Text)
		}
		for sentence := range strings.SplitSeq(s.Text, ". ") {
			if n := len(strings.Fields(sentence)); n > mostWords {
				t.Errorf("%s has a sentence of %d words, want at most %d: %s", s.Name, n, mostWords, sentence)
			}
		}
	}
	if words := unplain.FindString(Markdown()); words != "" {
		t.Errorf("docs/settings.md has %q", words)
	}
}

func TestTable_IsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range Table() {
		if !strings.HasPrefix(s.Name, prefix) || s.Text == "" || !strings.HasSuffix(s.Text, ".") || s.Unit == "" || s.Group == "" || seen[s.Name] {
			t.Errorf("%+v is not a whole line", s)
		}
		seen[s.Name] = true
		f, _ := reflect.TypeFor[Settings]().FieldByName(s.field)
		switch f.Type {
		case reflect.TypeFor[int](), reflect.TypeFor[Size](), reflect.TypeFor[time.Duration](), reflect.TypeFor[[]time.Duration]():
			if s.Min == "" || s.Max == "" {
				t.Errorf("%s has no range", s.Name)
			}
		}
	}
	if len(seen) != 143 {
		t.Errorf("%d settings", len(seen))
	}
}

func TestSettings_EachCanBeSet(t *testing.T) {
	t.Parallel()
	for _, s := range Table() {
		if len(s.OneOf) == 0 && s.Min == "" {
			continue
		}
		value := "nonsense"
		for _, p := range []Program{Consumer, Replayer, Desk, Collector} {
			_, warnings, err := Load(p, []string{database, s.Name + "=" + value})
			if !s.Of(p) {
				if err != nil || len(warnings) > 0 {
					t.Errorf("%s is stopped by %s=%s of another program: %v, warnings %v", p, s.Name, value, err, warnings)
				}
			} else if err == nil || !strings.Contains(err.Error(), s.Name) {
				t.Errorf("%s: %s=%s: %v", p, s.Name, value, err)
			}
		}
	}
}

func TestDefaults_Desk(t *testing.T) {
	t.Parallel()
	s, warnings, err := Load(Desk, []string{database, "DOCKET_SPOOL_DIR=/nowhere", "DOCKET_BATCH_MAX_BYTES=x"})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load: %v, warnings %v", err, warnings)
	}
	want := Settings{
		KafkaBrokers: []string{"localhost:9092"}, KafkaTopic: "decision-logs", KafkaDLQTopic: "decision-logs-dlq",
		KafkaParkingTopic: "decision-logs-parking", KafkaParkingDLQTopic: "decision-logs-parking-dlq",
		KafkaGroup: "docket", ParkingGroup: "docket-parking", KafkaSessionTimeout: 45 * time.Second, KafkaRebalanceTimeout: 90 * time.Second,
		DatabaseURL:    "postgres://docket:hunter2@db/docket",
		MaxRecordBytes: 16 << 20, StoreTimeout: 8 * time.Second, ProbeInterval: time.Second, PublishTimeout: 10 * time.Second,
		HTTPAddr: ":8082", LogLevel: "info", LogFormat: "json", ShutdownTimeout: 25 * time.Second,
		DeskGroup: "docket-desk", DeskMaxAttempts: 3, DeskMaxEntered: 100_000, DeskLease: 15 * time.Minute, DeskKeepResolved: 7 * 24 * time.Hour, DeskFourEyes: true,
		DeskRelayInterval: time.Second, DeskRelayBatch: 50, DeskRelayTries: 5,
		DeskRetryInterval: 5 * time.Minute, DeskRetryFirst: time.Minute, DeskRetryKinds: []string{"transient", "exhausted"},
		DeskRetryBackoff: 100 * time.Millisecond, DeskRetryMaxBackoff: 10 * time.Second,
		DeskAlertThreshold: 10, DeskAlertInterval: time.Minute, DeskAlertRepeat: time.Hour, DeskReportInterval: 10 * time.Minute,
		DeskAPIAddr: "127.0.0.1:8083", DeskConsole: true,
		DeskOIDCClaim: "groups", DeskOIDCName: "preferred_username", DeskOIDCScopes: []string{"openid", "profile"}, DeskOIDCLabel: "single sign-on", DeskOIDCSession: 4 * time.Hour,
		StatesMax: 1_000_000, StatesIdle: 90 * 24 * time.Hour, StatesKeepFlips: 365 * 24 * time.Hour,
		SpoolDir:      "/nowhere",
		ReaderSubject: "requested_by:host", ArchiveS3Endpoint: "https://s3.amazonaws.com", ArchiveS3Region: "us-east-1", CacheBytes: 10 << 30,
	}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(Settings{})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	s, _, err = Load(Desk, []string{database, "DOCKET_DESK_RETRY_KINDS=", "DOCKET_DESK_API_ADDR="})
	if err != nil || len(s.DeskRetryKinds) > 0 || s.DeskAPIAddr != "" {
		t.Errorf("set but empty means none: kinds %v, API %q, %v", s.DeskRetryKinds, s.DeskAPIAddr, err)
	}
}

func TestDesk_SettingsStopNoOtherProgram(t *testing.T) {
	t.Parallel()
	wrong := []string{
		database, "DOCKET_DESK_GROUP=docket", "DOCKET_DESK_RETRY_KINDS=decode", "DOCKET_DESK_API_TOKENS_FILE=/nowhere/at/all", "DOCKET_DESK_GRUOP=x",
		"DOCKET_DESK_API_ADDR=0.0.0.0:1", "DOCKET_DESK_RETRY_BACKOFF=1h", "DOCKET_DESK_API_TLS_CERT=/nowhere",
	}
	for _, p := range []Program{Consumer, Replayer} {
		s, warnings, err := LoadWith(p, wrong, Judges{"DOCKET_DESK_API_TOKENS": func(string) string { return "never" }})
		if err != nil || s.DeskGroup != "" {
			t.Errorf("%s: %v, group %q", p, err, s.DeskGroup)
		}
		if len(warnings) != 1 || warnings[0].Variable != "DOCKET_DESK_GRUOP" {
			t.Errorf("%s: warnings %v", p, warnings)
		}
	}
}

func TestComplaints_Desk(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	judges := Judges{"DOCKET_DESK_ALERT_URLS": func(string) string { return "cannot be used" }}
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"group of the consumer":       {[]string{"DOCKET_DESK_GROUP=docket"}, "DOCKET_DESK_GROUP: \"docket\" is already the group of DOCKET_KAFKA_GROUP"},
		"group of the replayer":       {[]string{"DOCKET_DESK_GROUP=docket-parking"}, "DOCKET_DESK_GROUP: \"docket-parking\" is already the group of DOCKET_PARKING_GROUP"},
		"retries to a home":           {[]string{"DOCKET_DESK_RETRY_TOPICS=decision-logs,decision-logs-dlq"}, "DOCKET_DESK_RETRY_TOPICS: \"decision-logs-dlq\" is the topic of DOCKET_KAFKA_DLQ_TOPIC, which no consumer reads"},
		"retries to no topic":         {[]string{"DOCKET_DESK_RETRY_TOPICS=a b"}, "DOCKET_DESK_RETRY_TOPICS: \"a b\" is not a topic name"},
		"decode is never retried":     {[]string{"DOCKET_DESK_RETRY_KINDS=transient,decode"}, "DOCKET_DESK_RETRY_KINDS: names decode"},
		"no such kind":                {[]string{"DOCKET_DESK_RETRY_KINDS=transient,tired"}, "DOCKET_DESK_RETRY_KINDS: \"tired\" is not a kind"},
		"back-off above its limit":    {[]string{"DOCKET_DESK_RETRY_BACKOFF=11s"}, "DOCKET_DESK_RETRY_BACKOFF: 11s is longer"},
		"API beyond loopback":         {[]string{"DOCKET_DESK_API_ADDR=:8083"}, "DOCKET_DESK_API_TLS_CERT: is missing; DOCKET_DESK_API_ADDR is \":8083\", which is not loopback"},
		"API on a name":               {[]string{"DOCKET_DESK_API_ADDR=desk.internal:8083"}, "DOCKET_DESK_API_TLS_CERT: is missing"},
		"API nowhere":                 {[]string{"DOCKET_DESK_API_ADDR=here"}, "DOCKET_DESK_API_ADDR: \"here\" is not host:port"},
		"API where health is":         {[]string{"DOCKET_HTTP_ADDR=127.0.0.1:8083"}, "DOCKET_DESK_API_ADDR: \"127.0.0.1:8083\" is already used by DOCKET_HTTP_ADDR"},
		"certificate without key":     {[]string{"DOCKET_DESK_API_TLS_CERT=" + junk}, "DOCKET_DESK_API_TLS_KEY: is missing"},
		"key without certificate":     {[]string{"DOCKET_DESK_API_TLS_KEY=" + junk}, "DOCKET_DESK_API_TLS_CERT: is missing; DOCKET_DESK_API_TLS_KEY"},
		"certificate is junk":         {[]string{"DOCKET_DESK_API_TLS_CERT=" + junk, "DOCKET_DESK_API_TLS_KEY=" + junk}, "DOCKET_DESK_API_TLS_CERT: certificate and key are not a pair"},
		"clients without TLS":         {[]string{"DOCKET_DESK_API_CLIENT_CA=" + junk, "DOCKET_DESK_API_CLIENTS=ada:admin"}, "DOCKET_DESK_API_TLS_CERT: is missing; DOCKET_DESK_API_CLIENT_CA needs TLS"},
		"clients that nobody signs":   {[]string{"DOCKET_DESK_API_CLIENTS=ada:admin"}, "DOCKET_DESK_API_CLIENTS: is set without DOCKET_DESK_API_CLIENT_CA"},
		"peers that are none":         {[]string{"DOCKET_DESK_PEERS=http://c:8080,dns:c"}, "DOCKET_DESK_PEERS: entry 2 must be http://host:port, https://host:port or dns:name:port"},
		"peers with a secret":         {[]string{"DOCKET_DESK_PEERS=http://u:planted@c:8080"}, "DOCKET_DESK_PEERS: entry 1 must hold no user"},
		"clients' authority is junk":  {[]string{"DOCKET_DESK_API_CLIENT_CA=" + junk}, "DOCKET_DESK_API_CLIENT_CA: the file holds no certificate"},
		"client without provider":     {[]string{"DOCKET_DESK_OIDC_CLIENT_ID=x"}, "DOCKET_DESK_OIDC_CLIENT_ID: is set without DOCKET_DESK_OIDC_ISSUER"},
		"provider without client":     {provider("DOCKET_DESK_OIDC_CLIENT_ID="), "DOCKET_DESK_OIDC_CLIENT_ID: is missing; DOCKET_DESK_OIDC_ISSUER needs it"},
		"provider without groups":     {provider("DOCKET_DESK_OIDC_GROUPS="), "DOCKET_DESK_OIDC_GROUPS: is missing"},
		"provider without way back":   {provider("DOCKET_DESK_OIDC_REDIRECT_URL="), "DOCKET_DESK_OIDC_REDIRECT_URL: is missing"},
		"way back without TLS":        {provider("DOCKET_DESK_OIDC_REDIRECT_URL=http://desk.example/login/callback"), "DOCKET_DESK_OIDC_REDIRECT_URL: \"http://desk.example/login/callback\" is not https"},
		"way back elsewhere":          {provider("DOCKET_DESK_OIDC_REDIRECT_URL=https://desk.example/callback"), "DOCKET_DESK_OIDC_REDIRECT_URL: "},
		"provider without TLS":        {provider("DOCKET_DESK_OIDC_ISSUER=http://127.0.0.1.evil.example"), "DOCKET_DESK_OIDC_ISSUER: "},
		"provider with password":      {provider("DOCKET_DESK_OIDC_ISSUER=https://u@idp.example"), "DOCKET_DESK_OIDC_ISSUER: "},
		"provider's authority":        {provider("DOCKET_DESK_OIDC_CA=" + junk), "DOCKET_DESK_OIDC_CA: the file holds no certificate"},
		"long label":                  {provider("DOCKET_DESK_OIDC_LABEL=" + strings.Repeat("é", 41)), "DOCKET_DESK_OIDC_LABEL: has 41 characters"},
		"what a judge says":           {[]string{"DOCKET_DESK_ALERT_URLS=slack://" + planted}, "DOCKET_DESK_ALERT_URLS: cannot be used"},
		"out of range":                {[]string{"DOCKET_DESK_MAX_ATTEMPTS=0"}, "DOCKET_DESK_MAX_ATTEMPTS: \"0\" is out of range; allowed: 1 to 1000"},
		"slip of the pen":             {[]string{"DOCKET_DESK_GRUOP=x"}, "did you mean DOCKET_DESK_GROUP?"},
		"no shutdown beyond the wait": {[]string{"DOCKET_SHUTDOWN_TIMEOUT=72s"}, "DOCKET_SHUTDOWN_TIMEOUT: 1m12s does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := LoadWith(Desk, append([]string{database}, c.env...), judges)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), planted) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// provider is a desk with OpenID Connect, and changes.
func provider(change ...string) []string {
	return append([]string{"DOCKET_DESK_OIDC_ISSUER=https://idp.example/realms/x", "DOCKET_DESK_OIDC_CLIENT_ID=docket", "DOCKET_DESK_OIDC_REDIRECT_URL=https://desk.example/login/callback", "DOCKET_DESK_OIDC_GROUPS=a:viewer"}, change...)
}

func TestDeskOIDC_Complete(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"DOCKET_DESK_OIDC_LABEL=Acme", "DOCKET_DESK_OIDC_ISSUER=http://[::1]:8080/realms/x", "DOCKET_DESK_OIDC_REDIRECT_URL=http://localhost:8083/login/callback"} {
		if s, _, err := Load(Desk, append([]string{database}, provider(change)...)); err != nil || len(s.DeskOIDCGroups) != 1 {
			t.Error(change, err)
		}
	}
}

func TestDeskAPIAddr_BeyondLoopbackNeedsTLS(t *testing.T) {
	t.Parallel()
	for addr, loopback := range map[string]bool{
		"127.0.0.1:0": true, "localhost:9": true, "[::1]:9": true, "127.8.8.8:1": true, "[::ffff:127.0.0.1]:1": true,
		":9": false, "0.0.0.0:9": false, "[::]:9": false, "10.0.0.1:9": false, "desk.example.com:9": false, "localhost.example.com:9": false,
	} {
		if _, _, err := Load(Desk, []string{database, "DOCKET_DESK_API_ADDR=" + addr}); (err == nil) != loopback {
			t.Errorf("%s is loopback: %v, and the error is %v", addr, loopback, err)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    Program
		env  []string
		want string
	}{
		{Consumer, nil, ":8080"}, {Desk, nil, ":8082"}, {Collector, nil, ":8084"}, {Replayer, nil, ":8081"}, {Replayer, []string{"DOCKET_HTTP_ADDR="}, ":8081"},
		{Consumer, []string{"DOCKET_HTTP_ADDR=:1"}, ":1"},
	} {
		if got := Lookup(c.p, c.env, "DOCKET_HTTP_ADDR"); got != c.want {
			t.Errorf("Lookup(%s, %v) = %q, want %q", c.p, c.env, got, c.want)
		}
	}
}

func TestHelp_EverySettingWithDefault(t *testing.T) {
	t.Parallel()
	for _, p := range []Program{Consumer, Replayer, Desk, Collector} {
		help := Help(p, 100)
		for _, s := range Table() {
			if !s.Of(p) {
				if strings.Contains(help, "    "+s.Name+s.state(p)+"\n") {
					t.Errorf("%s: %s is shown", p, s.Name)
				}
				continue
			}
			if !strings.Contains(help, s.Name+s.state(p)+"\n") {
				t.Errorf("%s: %s%s is missing", p, s.Name, s.state(p))
			}
		}
	}
}

func TestDocument_IsFresh(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "docs", "settings.md")
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Markdown(), string(have)); diff != "" {
		t.Errorf("docs/settings.md is stale; run go test ./internal/service/config -update (-table +document):\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"migrat": "migrate", "chekc": "check", "vresion": "version", "frobnicate": ""} {
		if got := Nearest(word, []string{"check", "migrate", "version", "demo"}); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
