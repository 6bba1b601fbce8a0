// Package config holds the settings of both programs: one table from which they are parsed, checked, explained by
// --help and written to docs/settings.md.
//
// It stays free of what the settings are used for: no client, no file is kept open, nothing is logged.
package config

import "time"

// Program is one of the two programs. Two settings have a default of their own in each, so that both can run side by
// side on one machine.
type Program string

// The programs.
const (
	Consumer Program = "consumer"
	Replayer Program = "parking-replayer"
)

// Settings are all settings. The tags of a field are the table: `env` its variable, `default` what it is when the
// variable is missing or empty (`replayer` where that differs in the replayer), `min` and `max` its range, `oneof` its
// choices, `text` one sentence on what it does, `group` the heading it opens. A secret can also come from a file whose
// path is in the variable with _FILE behind its name.
type Settings struct {
	KafkaBrokers          []string      `group:"Kafka" env:"DOCKET_KAFKA_BROKERS" default:"localhost:9092" unit:"host:port, by comma" text:"Brokers to ask first; the others are learnt from them."`
	KafkaTopic            string        `env:"DOCKET_KAFKA_TOPIC" default:"decision-logs" unit:"topic" text:"Where decision logs are read."`
	KafkaDLQTopic         string        `env:"DOCKET_KAFKA_DLQ_TOPIC" default:"decision-logs-dlq" unit:"topic" text:"Home of records that cannot be stored."`
	KafkaParkingTopic     string        `env:"DOCKET_KAFKA_PARKING_TOPIC" default:"decision-logs-parking" unit:"topic" text:"Home of records that the database could not take just now; the replayer reads it."`
	KafkaParkingDLQTopic  string        `env:"DOCKET_KAFKA_PARKING_DLQ_TOPIC" default:"decision-logs-parking-dlq" unit:"topic" text:"Home of records that the replayer gave up after the last attempt."`
	KafkaGroup            string        `env:"DOCKET_KAFKA_GROUP" default:"docket" unit:"consumer group" text:"Group of the consumer."`
	ParkingGroup          string        `env:"DOCKET_PARKING_GROUP" default:"docket-parking" unit:"consumer group" text:"Group of the replayer."`
	KafkaSessionTimeout   time.Duration `env:"DOCKET_KAFKA_SESSION_TIMEOUT" default:"45s" min:"1s" max:"30m" unit:"duration" text:"How long the group waits for a heartbeat before a member counts as dead."`
	KafkaRebalanceTimeout time.Duration `env:"DOCKET_KAFKA_REBALANCE_TIMEOUT" default:"90s" min:"2s" max:"1h" unit:"duration" text:"How long a member may take to hand its partitions over; one batch with all its retries must fit into 80% of it."`
	KafkaTLS              bool          `env:"DOCKET_KAFKA_TLS" default:"false" unit:"true or false" text:"Speak TLS 1.2 or later to the brokers and verify them."`
	KafkaTLSCA            string        `env:"DOCKET_KAFKA_TLS_CA" unit:"path, PEM" text:"Certificates that sign the brokers'; without it the system's."`
	KafkaTLSCert          string        `env:"DOCKET_KAFKA_TLS_CERT" unit:"path, PEM" text:"Client certificate, where brokers ask for one."`
	KafkaTLSKey           string        `env:"DOCKET_KAFKA_TLS_KEY" unit:"path, PEM" text:"Private key of the client certificate."`
	KafkaSASLMechanism    string        `env:"DOCKET_KAFKA_SASL_MECHANISM" oneof:"PLAIN,SCRAM-SHA-256,SCRAM-SHA-512" unit:"choice" text:"How to log in to the brokers; without it there is no login."`
	KafkaSASLUsername     string        `env:"DOCKET_KAFKA_SASL_USERNAME" unit:"text" text:"User of that login."`
	KafkaSASLPassword     Secret        `env:"DOCKET_KAFKA_SASL_PASSWORD" unit:"secret" text:"Password of that login."`

	DatabaseURL     Secret `group:"Database" env:"DOCKET_DATABASE_URL" required:"true" unit:"secret" text:"Postgres, as postgres://user:password@host:5432/database?sslmode=verify-full or as key=value words; what it leaves out comes from the PG* variables (PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSSLMODE and so on)."`
	AutoMigrate     bool   `env:"DOCKET_AUTO_MIGRATE" default:"false" unit:"true or false" text:"Bring the schema up to date at the start; needs a role that may change it."`
	PartitionsAhead int    `env:"DOCKET_PARTITIONS_AHEAD" default:"7" min:"0" max:"365" unit:"days" text:"For how many days ahead the consumer keeps partitions ready, at the start and each hour; 0 leaves that to others."`

	BatchMaxRecords int             `group:"Batches" env:"DOCKET_BATCH_MAX_RECORDS" default:"5000" min:"1" max:"100000" unit:"records" text:"Most Kafka records of one partition that are stored together."`
	BatchMaxBytes   Size            `env:"DOCKET_BATCH_MAX_BYTES" default:"8MiB" min:"64KiB" max:"1GiB" unit:"size" text:"Most bytes of Kafka records in a batch; a single record may be larger."`
	BatchMaxWait    time.Duration   `env:"DOCKET_BATCH_MAX_WAIT" default:"200ms" min:"1ms" max:"1m" unit:"duration" text:"How long a batch waits for more records, from its first on, before it is stored as it is; what the one before took to be stored comes off, a quarter at most."`
	MaxRecordBytes  Size            `env:"DOCKET_MAX_RECORD_BYTES" default:"16MiB" min:"1KiB" max:"256MiB" unit:"size" text:"Largest Kafka record after gunzip; a larger one goes to the dead-letter topic as too_large."`
	StoreTimeout    time.Duration   `env:"DOCKET_STORE_TIMEOUT" default:"8s" min:"100ms" max:"10m" unit:"duration" text:"How long one write to Postgres may take."`
	RetryPauses     []time.Duration `env:"DOCKET_RETRY_PAUSES" default:"1s,2s" min:"0s" max:"5m" unit:"durations, by comma" text:"Pauses before a transient failure is tried again; one try more than there are pauses."`
	ParkBatches     int             `env:"DOCKET_PARK_BATCHES" default:"3" min:"0" max:"1000000" unit:"batches" text:"Whole batches parked in a row before an outage is waited out instead; 0 parks for ever."`
	ProbeInterval   time.Duration   `env:"DOCKET_PROBE_INTERVAL" default:"1s" min:"10ms" max:"10m" unit:"duration" text:"How often the database is probed while holding; one that is away is looked for five times as often, by one partition for all."`
	PublishTimeout  time.Duration   `env:"DOCKET_PUBLISH_TIMEOUT" default:"10s" min:"100ms" max:"10m" unit:"duration" text:"How long the brokers may take to acknowledge forwarded records before they are spooled."`

	ParkingBackoff     time.Duration `group:"Parking" env:"DOCKET_PARKING_BACKOFF" default:"1m" min:"1ms" max:"168h" unit:"duration" text:"How long a parked record rests before its first replay; it doubles with each attempt."`
	ParkingMaxBackoff  time.Duration `env:"DOCKET_PARKING_MAX_BACKOFF" default:"1h" min:"1ms" max:"168h" unit:"duration" text:"Longest rest between two attempts; keep the retention of the parking topic well above it."`
	ParkingMaxAttempts int           `env:"DOCKET_PARKING_MAX_ATTEMPTS" default:"5" min:"1" max:"1000" unit:"attempts" text:"Tries against a healthy database before a record goes to the parking dead-letter topic."`
	ParkingLookahead   int           `env:"DOCKET_PARKING_LOOKAHEAD" default:"10000" min:"1" max:"1000000" unit:"records" text:"Parked records of one partition that are looked at for due ones behind those that are not."`

	SpoolDir      string        `group:"Spool" env:"DOCKET_SPOOL_DIR" default:"spool/consumer" replayer:"spool/parking-replayer" empty:"no spool" unit:"path" text:"Directory for records that Kafka did not take, one per process and on a lasting disk; set but empty means no spool: hold instead."`
	SpoolMaxBytes Size          `env:"DOCKET_SPOOL_MAX_BYTES" default:"1GiB" min:"64KiB" max:"1TiB" unit:"size" text:"Most bytes in the spool; when full, Docket holds."`
	SpoolMaxAge   time.Duration `env:"DOCKET_SPOOL_MAX_AGE" default:"24h" min:"1s" max:"8760h" unit:"duration" text:"Age of the oldest spooled file at which an alarm is logged; files are removed at that age only where eviction is on."`
	SpoolOnFull   string        `env:"DOCKET_SPOOL_ON_FULL" default:"hold" oneof:"hold,evict" unit:"choice" text:"What to do when the spool is full: hold, or evict the oldest files, which is data loss and counted as such."`

	HTTPAddr        string        `group:"Operation" env:"DOCKET_HTTP_ADDR" default:":8080" replayer:":8081" unit:"host:port" text:"Where /healthz, /readyz and /metrics are served."`
	LogLevel        string        `env:"DOCKET_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" unit:"choice" text:"Least level that is logged, to standard error."`
	LogFormat       string        `env:"DOCKET_LOG_FORMAT" default:"json" oneof:"json,console" unit:"choice" text:"Log lines for machines or for people."`
	ShutdownTimeout time.Duration `env:"DOCKET_SHUTDOWN_TIMEOUT" default:"25s" min:"100ms" max:"30m" unit:"duration" text:"How long a stop may take to carry the batch in hand to its homes; what is left stays uncommitted."`
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
