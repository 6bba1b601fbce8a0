// Package config holds the settings of the programs: one table from which they are parsed, checked, explained by
// --help and written to docs/settings.md.
//
// It stays free of what the settings are used for: no client, no file is kept open, nothing is logged.
package config

import "time"

// Program is one of the programs. Some settings have a default of their own in each, so that all can run side by side on
// one machine, and some belong to one or two of them alone.
type Program string

// The programs.
const (
	Consumer  Program = "consumer"
	Replayer  Program = "parking-replayer"
	Desk      Program = "docket"
	Collector Program = "collector"
)

// Settings are all settings. The tags of a field are the table: `env` its variable, `default` what it is when the
// variable is missing or empty (`replayer`, `desk` and `collector` where that differs there), `min` and `max` its range, `oneof` its
// choices, `text` one sentence on what it does, `group` the heading it opens, `for` the programs that it belongs to where it
// is not all: to the others it is not there, whatever its value. A secret can also come from a file whose path is in the
// variable with _FILE behind its name.
type Settings struct {
	KafkaBrokers          []string      `group:"Kafka" env:"DOCKET_KAFKA_BROKERS" default:"localhost:9092" unit:"host:port, by comma" text:"Brokers to ask first; the others are learnt from them."`
	KafkaTopic            string        `env:"DOCKET_KAFKA_TOPIC" default:"decision-logs" unit:"topic" text:"Where decision logs are read; the collector writes them there."`
	KafkaDLQTopic         string        `env:"DOCKET_KAFKA_DLQ_TOPIC" default:"decision-logs-dlq" unit:"topic" text:"Home of records that cannot be stored."`
	KafkaParkingTopic     string        `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_PARKING_TOPIC" default:"decision-logs-parking" unit:"topic" text:"Home of records that the database could not take just now; the replayer reads it."`
	KafkaParkingDLQTopic  string        `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_PARKING_DLQ_TOPIC" default:"decision-logs-parking-dlq" unit:"topic" text:"Home of records that the replayer gave up after the last attempt."`
	KafkaGroup            string        `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_GROUP" default:"docket" unit:"consumer group" text:"Group of the consumer."`
	ParkingGroup          string        `for:"consumer,parking-replayer,docket" env:"DOCKET_PARKING_GROUP" default:"docket-parking" unit:"consumer group" text:"Group of the replayer."`
	KafkaSessionTimeout   time.Duration `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_SESSION_TIMEOUT" default:"45s" min:"1s" max:"30m" unit:"duration" text:"How long the group waits for a heartbeat before a member counts as dead."`
	KafkaRebalanceTimeout time.Duration `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_REBALANCE_TIMEOUT" default:"90s" min:"2s" max:"1h" unit:"duration" text:"How long a member may take to hand its partitions over; one batch with all its retries must fit into 80% of it."`
	KafkaTLS              bool          `env:"DOCKET_KAFKA_TLS" default:"false" unit:"true or false" text:"Speak TLS 1.2 or later to the brokers and verify them."`
	KafkaTLSCA            string        `env:"DOCKET_KAFKA_TLS_CA" unit:"path, PEM" text:"Certificates that sign the brokers'; without it the system's."`
	KafkaTLSCert          string        `env:"DOCKET_KAFKA_TLS_CERT" unit:"path, PEM" text:"Client certificate, where brokers ask for one."`
	KafkaTLSKey           string        `env:"DOCKET_KAFKA_TLS_KEY" unit:"path, PEM" text:"Private key of the client certificate."`
	KafkaSASLMechanism    string        `env:"DOCKET_KAFKA_SASL_MECHANISM" oneof:"PLAIN,SCRAM-SHA-256,SCRAM-SHA-512" unit:"choice" text:"How to log in to the brokers; without it there is no login."`
	KafkaSASLUsername     string        `env:"DOCKET_KAFKA_SASL_USERNAME" unit:"text" text:"User of that login."`
	KafkaSASLPassword     Secret        `env:"DOCKET_KAFKA_SASL_PASSWORD" unit:"secret" text:"Password of that login."`

	DatabaseURL     Secret `group:"Database" for:"consumer,parking-replayer,docket" env:"DOCKET_DATABASE_URL" required:"true" unit:"secret" text:"Postgres, as postgres://user:password@host:5432/database?sslmode=verify-full or as key=value words; what it leaves out comes from the PG* variables (PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSSLMODE and so on)."`
	AutoMigrate     bool   `for:"consumer,parking-replayer,docket" env:"DOCKET_AUTO_MIGRATE" default:"false" unit:"true or false" text:"Bring the schema up to date at the start; needs a role that may change it."`
	PartitionsAhead int    `for:"consumer,parking-replayer" env:"DOCKET_PARTITIONS_AHEAD" default:"7" min:"0" max:"365" unit:"days" text:"For how many days ahead the consumer keeps partitions ready, at the start and each hour; 0 leaves that to others."`

	BatchMaxRecords int             `group:"Batches" for:"consumer,parking-replayer" env:"DOCKET_BATCH_MAX_RECORDS" default:"5000" min:"1" max:"100000" unit:"records" text:"Most Kafka records of one partition that are stored together."`
	BatchMaxBytes   Size            `for:"consumer,parking-replayer" env:"DOCKET_BATCH_MAX_BYTES" default:"8MiB" min:"64KiB" max:"1GiB" unit:"size" text:"Most bytes of Kafka records in a batch; a single record may be larger."`
	BatchMaxWait    time.Duration   `for:"consumer,parking-replayer" env:"DOCKET_BATCH_MAX_WAIT" default:"200ms" min:"1ms" max:"1m" unit:"duration" text:"How long a batch waits for more records, from its first on, before it is stored as it is; what the one before took to be stored comes off, a quarter at most."`
	MaxRecordBytes  Size            `for:"consumer,parking-replayer,docket" env:"DOCKET_MAX_RECORD_BYTES" default:"16MiB" min:"1KiB" max:"256MiB" unit:"size" text:"Largest Kafka record after gunzip; a larger one goes to the dead-letter topic as too_large."`
	StoreTimeout    time.Duration   `for:"consumer,parking-replayer,docket" env:"DOCKET_STORE_TIMEOUT" default:"8s" min:"100ms" max:"10m" unit:"duration" text:"How long one write to Postgres may take."`
	RetryPauses     []time.Duration `for:"consumer,parking-replayer" env:"DOCKET_RETRY_PAUSES" default:"1s,2s" min:"0s" max:"5m" unit:"durations, by comma" text:"Pauses before a transient failure is tried again; one try more than there are pauses."`
	ParkBatches     int             `for:"consumer,parking-replayer" env:"DOCKET_PARK_BATCHES" default:"3" min:"0" max:"1000000" unit:"batches" text:"Whole batches parked in a row before an outage is waited out instead; 0 parks for ever."`
	ProbeInterval   time.Duration   `for:"consumer,parking-replayer,docket" env:"DOCKET_PROBE_INTERVAL" default:"1s" min:"10ms" max:"10m" unit:"duration" text:"How often the database is probed while holding; one that is away is looked for five times as often, by one partition for all."`
	PublishTimeout  time.Duration   `env:"DOCKET_PUBLISH_TIMEOUT" default:"10s" collector:"5s" min:"100ms" max:"10m" unit:"duration" text:"How long the brokers may take to acknowledge forwarded records before they are spooled; where there is no spool, before they count as not sent. An upload that takes longer is answered 503; OPA waits 10s for that answer by default."`

	ParkingBackoff     time.Duration `group:"Parking" for:"consumer,parking-replayer" env:"DOCKET_PARKING_BACKOFF" default:"1m" min:"1ms" max:"168h" unit:"duration" text:"How long a parked record rests before its first replay; it doubles with each attempt."`
	ParkingMaxBackoff  time.Duration `for:"consumer,parking-replayer" env:"DOCKET_PARKING_MAX_BACKOFF" default:"1h" min:"1ms" max:"168h" unit:"duration" text:"Longest rest between two attempts; keep the retention of the parking topic well above it."`
	ParkingMaxAttempts int           `for:"consumer,parking-replayer" env:"DOCKET_PARKING_MAX_ATTEMPTS" default:"5" min:"1" max:"1000" unit:"attempts" text:"Tries against a healthy database before a record goes to the parking dead-letter topic."`
	ParkingLookahead   int           `for:"consumer,parking-replayer" env:"DOCKET_PARKING_LOOKAHEAD" default:"10000" min:"1" max:"1000000" unit:"records" text:"Parked records of one partition that are looked at for due ones behind those that are not."`

	SpoolDir      string        `group:"Spool" for:"consumer,parking-replayer" env:"DOCKET_SPOOL_DIR" default:"spool/consumer" replayer:"spool/parking-replayer" empty:"no spool" unit:"path" text:"Directory for records that Kafka did not take, one per process and on a lasting disk; set but empty means no spool: hold instead."`
	SpoolMaxBytes Size          `for:"consumer,parking-replayer" env:"DOCKET_SPOOL_MAX_BYTES" default:"1GiB" min:"64KiB" max:"1TiB" unit:"size" text:"Most bytes in the spool; when full, Docket holds."`
	SpoolMaxAge   time.Duration `for:"consumer,parking-replayer" env:"DOCKET_SPOOL_MAX_AGE" default:"24h" min:"1s" max:"8760h" unit:"duration" text:"Age of the oldest spooled file at which an alarm is logged; files are removed at that age only where eviction is on."`
	SpoolOnFull   string        `for:"consumer,parking-replayer" env:"DOCKET_SPOOL_ON_FULL" default:"hold" oneof:"hold,evict" unit:"choice" text:"What to do when the spool is full: hold, or evict the oldest files, which is data loss and counted as such."`

	HTTPAddr        string        `group:"Operation" env:"DOCKET_HTTP_ADDR" default:":8080" replayer:":8081" desk:":8082" collector:":8084" unit:"host:port" text:"Where /healthz, /readyz and /metrics are served."`
	LogLevel        string        `env:"DOCKET_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" unit:"choice" text:"Least level that is logged, to standard error."`
	LogFormat       string        `env:"DOCKET_LOG_FORMAT" default:"json" oneof:"json,console" unit:"choice" text:"Log lines for machines or for people."`
	ShutdownTimeout time.Duration `env:"DOCKET_SHUTDOWN_TIMEOUT" default:"25s" min:"100ms" max:"30m" unit:"duration" text:"How long a stop may take to carry the batch in hand to its homes; what is left stays uncommitted."`

	DeskGroup         string        `group:"Desk" for:"docket" env:"DOCKET_DESK_GROUP" default:"docket-desk" unit:"consumer group" text:"Group in which the desk reads both dead-letter topics; verify holds what it has read against the ledger."`
	DeskMaxAttempts   int           `for:"docket" env:"DOCKET_DESK_MAX_ATTEMPTS" default:"3" min:"1" max:"1000" unit:"attempts" text:"Retries that end dead before a dead letter is FAILED and only a person retries it."`
	DeskLease         time.Duration `for:"docket" env:"DOCKET_DESK_LEASE" default:"15m" min:"1s" max:"168h" unit:"duration" text:"How long a retry may go without news before its dead letter is PENDING again."`
	DeskKeepResolved  time.Duration `for:"docket" env:"DOCKET_DESK_KEEP_RESOLVED" default:"168h" min:"1m" max:"87600h" unit:"duration" text:"How long a resolved dead letter stays; its audit stays for ever."`
	DeskRelayInterval time.Duration `for:"docket" env:"DOCKET_DESK_RELAY_INTERVAL" default:"1s" min:"10ms" max:"1m" unit:"duration" text:"How often the outbox is looked into when it was empty."`
	DeskRelayBatch    int           `for:"docket" env:"DOCKET_DESK_RELAY_BATCH" default:"50" min:"1" max:"1000" unit:"records" text:"Most records of the outbox that are published together."`
	DeskRelayTries    int           `for:"docket" env:"DOCKET_DESK_RELAY_TRIES" default:"5" min:"1" max:"1000" unit:"tries" text:"Publishes of a retried record that may fail before its dead letter is FAILED."`

	DeskRetryInterval   time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_INTERVAL" default:"5m" min:"1s" max:"168h" unit:"duration" text:"How often what time can heal is retried by itself."`
	DeskRetryFirst      time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_FIRST" default:"1m" min:"0s" max:"168h" unit:"duration" text:"How long after the start the first of these runs is."`
	DeskRetryKinds      []string      `for:"docket" env:"DOCKET_DESK_RETRY_KINDS" default:"transient,exhausted" empty:"none" unit:"kinds, by comma" text:"Kinds of failure that are retried by themselves: transient, exhausted, data, conflict; never decode. Set but empty: none."`
	DeskRetryBackoff    time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_BACKOFF" default:"100ms" min:"1ms" max:"1h" unit:"duration" text:"Pause after a portion of such a run failed; it doubles with each that fails in a row."`
	DeskRetryMaxBackoff time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_MAX_BACKOFF" default:"10s" min:"1ms" max:"1h" unit:"duration" text:"Longest of these pauses."`

	DeskAlertURLs      Secret        `for:"docket" env:"DOCKET_DESK_ALERT_URLS" unit:"URLs, by white space" text:"Where alerts and reports go beside the log: https://… (a webhook), slack://…, smtp://… and others, as the shoutrrr library writes them."`
	DeskAlertThreshold int           `for:"docket" env:"DOCKET_DESK_ALERT_THRESHOLD" default:"10" min:"1" max:"1000000000" unit:"dead letters" text:"Unresolved dead letters from which on there is an alert."`
	DeskAlertInterval  time.Duration `for:"docket" env:"DOCKET_DESK_ALERT_INTERVAL" default:"1m" min:"1s" max:"24h" unit:"duration" text:"How often it is looked whether there is something to alert about."`
	DeskAlertRepeat    time.Duration `for:"docket" env:"DOCKET_DESK_ALERT_REPEAT" default:"1h" min:"1s" max:"168h" unit:"duration" text:"How long an alert that was told is held back while it still holds."`
	DeskReportInterval time.Duration `for:"docket" env:"DOCKET_DESK_REPORT_INTERVAL" default:"10m" min:"1s" max:"168h" unit:"duration" text:"How often there is a report, where anything is unresolved."`

	DeskAPIAddr     string   `for:"docket" env:"DOCKET_DESK_API_ADDR" default:"127.0.0.1:8083" empty:"no API" unit:"host:port" text:"Where the HTTP API listens; set but empty: nowhere."`
	DeskAPITokens   Secret   `for:"docket" env:"DOCKET_DESK_API_TOKENS" unit:"name:role:token, by white space" text:"Who may use the API: name:role:token for each, white space between them, the role being viewer, auditor, operator or admin. Without tokens and without client certificates nobody may."`
	DeskAPITLSCert  string   `for:"docket" env:"DOCKET_DESK_API_TLS_CERT" unit:"path, PEM" text:"Certificate of the API; required where it listens beyond loopback."`
	DeskAPITLSKey   string   `for:"docket" env:"DOCKET_DESK_API_TLS_KEY" unit:"path, PEM" text:"Private key of that certificate."`
	DeskAPIClientCA string   `for:"docket" env:"DOCKET_DESK_API_CLIENT_CA" unit:"path, PEM" text:"Certificates that sign those of clients (mTLS)."`
	DeskAPIClients  []string `for:"docket" env:"DOCKET_DESK_API_CLIENTS" unit:"name:role, by comma" text:"Common names of client certificates and the role of each."`
	Operator        string   `for:"docket" env:"DOCKET_OPERATOR" unit:"name" text:"Who decides, where a command is not told by --operator."`

	ReaderSubject    string   `group:"Reader" for:"docket" env:"DOCKET_READER_SUBJECT" default:"requested_by:host" unit:"subject" text:"Who counts as the same subject when a decision is explained: requested_by, requested_by:host, label:NAME or input:/POINTER."`
	ReaderExtractors []string `for:"docket" env:"DOCKET_READER_EXTRACTORS" unit:"PATH=ROLE:/POINTER, by comma" text:"Where the results of a path say what: ROLE is allow, deny, reasons, policies, rules or subject, /POINTER a JSON pointer into result, empty for all of it (for subject into input, and never empty); a PATH that ends in /* stands for all below it."`

	ArchiveTo          string `group:"Archive" for:"docket" env:"DOCKET_ARCHIVE_TO" unit:"path or s3://bucket/prefix" text:"Where days are archived to and restored from."`
	ArchiveS3Endpoint  string `for:"docket" env:"DOCKET_ARCHIVE_S3_ENDPOINT" default:"https://s3.amazonaws.com" unit:"URL" text:"Object storage that speaks S3; http:// only where nobody listens on the way."`
	ArchiveS3Region    string `for:"docket" env:"DOCKET_ARCHIVE_S3_REGION" default:"us-east-1" unit:"text" text:"Region of the bucket."`
	ArchiveS3AccessKey string `for:"docket" env:"DOCKET_ARCHIVE_S3_ACCESS_KEY" unit:"text" text:"Access key of the object storage; without it the machine's own identity is asked for."`
	ArchiveS3SecretKey Secret `for:"docket" env:"DOCKET_ARCHIVE_S3_SECRET_KEY" unit:"secret" text:"Secret of that access key."`
	ArchiveS3CA        string `for:"docket" env:"DOCKET_ARCHIVE_S3_CA" unit:"path, PEM" text:"Certificates that sign the object storage's; without it the system's."`

	CollectorAddr        string        `group:"Collector" for:"collector" env:"DOCKET_COLLECTOR_ADDR" default:"127.0.0.1:8085" unit:"host:port" text:"Where OPA uploads decision logs to: POST /logs, or any path that its resource names."`
	CollectorTokens      Secret        `for:"collector" env:"DOCKET_COLLECTOR_TOKENS" unit:"name:token, by white space" text:"Who may upload by a bearer token: name:token for each, white space between them."`
	CollectorTLSCert     string        `for:"collector" env:"DOCKET_COLLECTOR_TLS_CERT" unit:"path, PEM" text:"Certificate of that address; required where it listens beyond loopback, unless DOCKET_COLLECTOR_PLAINTEXT is true."`
	CollectorTLSKey      string        `for:"collector" env:"DOCKET_COLLECTOR_TLS_KEY" unit:"path, PEM" text:"Private key of that certificate."`
	CollectorClientCA    string        `for:"collector" env:"DOCKET_COLLECTOR_CLIENT_CA" unit:"path, PEM" text:"Certificates that sign those of clients (mTLS)."`
	CollectorClients     []string      `for:"collector" env:"DOCKET_COLLECTOR_CLIENTS" unit:"names, by comma" text:"Common names of client certificates that may upload; none: each that is signed so."`
	CollectorPlaintext   bool          `for:"collector" env:"DOCKET_COLLECTOR_PLAINTEXT" default:"false" unit:"true or false" text:"Listen beyond loopback without TLS: only where something else keeps the network private."`
	CollectorAnonymous   bool          `for:"collector" env:"DOCKET_COLLECTOR_ANONYMOUS" default:"false" unit:"true or false" text:"Let everybody upload who reaches an address beyond loopback, with neither token nor certificate."`
	CollectorKey         string        `for:"collector" env:"DOCKET_COLLECTOR_KEY" default:"requested_by" unit:"subject" text:"What decisions are keyed by, so that those of one subject keep their order: requested_by, requested_by:host, label:NAME, input:/POINTER or decision_id; what has none of it is keyed by decision_id."`
	CollectorDrop        []string      `for:"collector" env:"DOCKET_COLLECTOR_DROP" unit:"JSON pointers, by comma" text:"Values to take out of every decision before Kafka sees it, like /input/password; each that was there is added to erased."`
	CollectorMask        []string      `for:"collector" env:"DOCKET_COLLECTOR_MASK" unit:"JSON pointers, by comma" text:"Values to replace by **REDACTED**; each that was there is added to masked."`
	CollectorUploadBytes Size          `for:"collector" env:"DOCKET_COLLECTOR_UPLOAD_BYTES" default:"8MiB" min:"1KiB" max:"256MiB" unit:"size" text:"Largest upload as it comes; a larger one is answered 413."`
	CollectorInflated    Size          `for:"collector" env:"DOCKET_COLLECTOR_INFLATED_BYTES" default:"64MiB" min:"1KiB" max:"1GiB" unit:"size" text:"Largest upload after gunzip; a larger one is answered 413."`
	CollectorUploads     int           `for:"collector" env:"DOCKET_COLLECTOR_UPLOADS" default:"512" min:"1" max:"10000" unit:"uploads" text:"Uploads that are worked on at once; further ones are answered 429."`
	CollectorMemory      Size          `for:"collector" env:"DOCKET_COLLECTOR_MEMORY" default:"256MiB" min:"1MiB" max:"1TiB" unit:"size" text:"Most bytes of uploads, as they came and gunzipped, in memory at once; what would not fit is answered 429."`
	CollectorBodyTimeout time.Duration `for:"collector" env:"DOCKET_COLLECTOR_BODY_TIMEOUT" default:"15s" min:"100ms" max:"10m" unit:"duration" text:"How long a body may take to come."`
	CollectorRetryAfter  time.Duration `for:"collector" env:"DOCKET_COLLECTOR_RETRY_AFTER" default:"2s" min:"1s" max:"1h" unit:"duration" text:"What Retry-After says with 429 and 503, in whole seconds."`

	files map[string]string // of secrets that came from a file: variable to path
}

// Tries is how often a write is tried before it counts as failed.
func (s Settings) Tries() int { return len(s.RetryPauses) + 1 }

// SpoolAllowance is what appending a batch to the spool may take out of the retry budget: writing, two syncs, a rename.
const SpoolAllowance = 5 * time.Second

// RetryBudget is the longest that an ordinary batch takes to its homes: every try at its limit, the pauses between
// them, publishing what was not stored, and the spool for what could not be published.
func (s Settings) RetryBudget() time.Duration {
	budget := time.Duration(s.Tries())*s.StoreTimeout + s.PublishTimeout + SpoolAllowance
	for _, pause := range s.RetryPauses {
		budget += pause
	}
	return budget
}
