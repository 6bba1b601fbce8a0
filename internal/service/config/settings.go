// Package config holds the settings of the programs: one table from which they are parsed, checked, explained by
// --help and written to docs/settings.md.
//
// It stays free of what the settings are used for: no client, no file is kept open, nothing is logged.
package config

import (
	"time"

	"docket/internal/consumer/shards"
	"docket/internal/record/envelope"
)

// Program is one of the programs. Some settings have a default of their own in each, so that all can run on one machine.
// Some settings belong to one or two programs alone.
type Program string

// The programs.
const (
	Consumer  Program = "consumer"
	Replayer  Program = "parking-replayer"
	Desk      Program = "docket"
	Collector Program = "collector"
)

// Settings are all settings. The tags of a field are the table. `env` is its variable. `default` is its value if the
// variable is missing or empty; `replayer`, `desk` and `collector` have the defaults that differ. `min` and `max` are its
// range, `oneof` its choices, and `text` is one sentence on its effect. `group` is the heading that it opens. `for` lists
// its programs, if not all: the others do not know it. A secret can also come from a file, whose path is in the variable
// with _FILE behind its name.
type Settings struct {
	KafkaBrokers          []string      `group:"Kafka" env:"DOCKET_KAFKA_BROKERS" default:"localhost:9092" unit:"host:port, by comma" text:"Brokers for the first connection. Docket learns the others from them."`
	KafkaTopic            string        `env:"DOCKET_KAFKA_TOPIC" default:"decision-logs" unit:"topic" text:"Topic with decision logs. The collector writes it, and the consumer reads it."`
	KafkaDLQTopic         string        `env:"DOCKET_KAFKA_DLQ_TOPIC" default:"decision-logs-dlq" unit:"topic" text:"Dead-letter topic: records that cannot be stored."`
	KafkaParkingTopic     string        `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_PARKING_TOPIC" default:"decision-logs-parking" unit:"topic" text:"Parking topic: records that the database did not accept for now. The replayer reads it."`
	KafkaParkingDLQTopic  string        `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_PARKING_DLQ_TOPIC" default:"decision-logs-parking-dlq" unit:"topic" text:"Parking dead-letter topic: records that failed the last attempt of the replayer."`
	KafkaGroup            string        `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_GROUP" default:"docket" unit:"consumer group" text:"Consumer group of the consumer."`
	ParkingGroup          string        `for:"consumer,parking-replayer,docket" env:"DOCKET_PARKING_GROUP" default:"docket-parking" unit:"consumer group" text:"Consumer group of the replayer."`
	KafkaSessionTimeout   time.Duration `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_SESSION_TIMEOUT" default:"45s" min:"1s" max:"30m" unit:"duration" text:"How long Kafka waits for a heartbeat of a member before it gives its partitions to other members."`
	KafkaRebalanceTimeout time.Duration `for:"consumer,parking-replayer,docket" env:"DOCKET_KAFKA_REBALANCE_TIMEOUT" default:"90s" min:"2s" max:"1h" unit:"duration" text:"How long a member may take to release its partitions. The longest time for one batch, with all its retries, must fit into 80% of it."`
	KafkaTLS              bool          `env:"DOCKET_KAFKA_TLS" default:"false" unit:"true or false" text:"Use TLS 1.2 or later for the brokers, and verify their certificates."`
	KafkaTLSCA            string        `env:"DOCKET_KAFKA_TLS_CA" unit:"path, PEM" text:"CA certificates for the brokers. If it is not set, Docket uses those of the system."`
	KafkaTLSCert          string        `env:"DOCKET_KAFKA_TLS_CERT" unit:"path, PEM" text:"Client certificate, if the brokers require one."`
	KafkaTLSKey           string        `env:"DOCKET_KAFKA_TLS_KEY" unit:"path, PEM" text:"Private key of the client certificate."`
	KafkaSASLMechanism    string        `env:"DOCKET_KAFKA_SASL_MECHANISM" oneof:"PLAIN,SCRAM-SHA-256,SCRAM-SHA-512" unit:"choice" text:"SASL mechanism for the brokers. If it is not set, Docket does not log in."`
	KafkaSASLUsername     string        `env:"DOCKET_KAFKA_SASL_USERNAME" unit:"text" text:"User for SASL."`
	KafkaSASLPassword     Secret        `env:"DOCKET_KAFKA_SASL_PASSWORD" unit:"secret" text:"Password for SASL."`
	HeaderKey             Secret        `env:"DOCKET_HEADER_KEY" unit:"secret" text:"Key of 32 bytes or more that proves the headers of forwarded records (docket-mac), the same for all programs. A second line may hold the former key. With it, a parked record without proof is replayed as one that was never tried, and a dead letter without proof is listed as foreign."`

	DatabaseURL     Secret `group:"Database" for:"consumer,parking-replayer,docket" env:"DOCKET_DATABASE_URL" required:"true" unit:"secret" text:"Postgres connection, as postgres://user:password@host:5432/database?sslmode=verify-full or as key=value words. Missing parts come from PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSSLMODE and the other PG* variables."`
	AutoMigrate     bool   `for:"consumer,parking-replayer,docket" env:"DOCKET_AUTO_MIGRATE" default:"false" unit:"true or false" text:"Migrate the schema at the start. The role needs the right to change it."`
	PartitionsAhead int    `for:"consumer,parking-replayer" env:"DOCKET_PARTITIONS_AHEAD" default:"7" min:"0" max:"365" unit:"days" text:"How many days ahead the consumer creates table partitions, at the start and every hour. 0 creates none; the replayer never does."`

	BatchMaxRecords int             `group:"Batches" for:"consumer,parking-replayer" env:"DOCKET_BATCH_MAX_RECORDS" default:"5000" min:"1" max:"100000" unit:"records" text:"Largest batch, in Kafka records of one partition."`
	BatchMaxBytes   Size            `for:"consumer,parking-replayer" env:"DOCKET_BATCH_MAX_BYTES" default:"8MiB" min:"64KiB" max:"1GiB" unit:"size" text:"Largest batch, in bytes of Kafka records. A single record may be larger."`
	BatchMaxWait    time.Duration   `for:"consumer,parking-replayer" env:"DOCKET_BATCH_MAX_WAIT" default:"200ms" min:"1ms" max:"1m" unit:"duration" text:"How long to wait for a batch to fill after its first record. A consumer takes off the time that the previous batch took to store, up to a quarter of the wait. It waits no longer than 100 records took to come at the last batch, and no shorter than twice the time of storing a batch. A fifth of the wait is the least. While all is read, answers of Kafka are taken every eighth of it, 100ms at most; after 100 records or more, twice as often."`
	MaxRecordBytes  Size            `for:"consumer,parking-replayer,docket" env:"DOCKET_MAX_RECORD_BYTES" default:"16MiB" min:"1KiB" max:"256MiB" unit:"size" text:"Largest Kafka record after decompression. A larger record is dead-lettered as too_large."`
	MaxRefused      int             `for:"consumer,parking-replayer,collector" env:"DOCKET_MAX_REFUSED" default:"100" min:"1" max:"100000" unit:"decisions" text:"How many refused decisions of one upload or Kafka record have a dead letter each. Beyond that, one dead letter holds the others."`
	StoreTimeout    time.Duration   `for:"consumer,parking-replayer,docket" env:"DOCKET_STORE_TIMEOUT" default:"8s" min:"100ms" max:"10m" unit:"duration" text:"Time limit for one write to Postgres."`
	RetryPauses     []time.Duration `for:"consumer,parking-replayer" env:"DOCKET_RETRY_PAUSES" default:"1s,2s" min:"0s" max:"5m" unit:"durations, by comma" text:"Pause before each retry of a transient failure, up to 10. The number of attempts is one more."`
	ParkBatches     int             `for:"consumer,parking-replayer" env:"DOCKET_PARK_BATCHES" default:"3" min:"0" max:"1000000" unit:"batches" text:"How many whole batches in a row Docket parks during an outage before it holds. 0 means no limit."`
	ProbeInterval   time.Duration   `for:"consumer,parking-replayer,docket" env:"DOCKET_PROBE_INTERVAL" default:"1s" min:"10ms" max:"10m" unit:"duration" text:"Time between two probes while holding. One partition probes for all, if their decisions are of the same hour. An unreachable database is probed five times as often, once for all."`
	PublishTimeout  time.Duration   `env:"DOCKET_PUBLISH_TIMEOUT" default:"10s" collector:"5s" min:"100ms" max:"10m" unit:"duration" text:"How long to wait for the brokers to acknowledge records. After that, the consumer and the replayer spool them, or hold if they have no spool. The collector answers 503; OPA waits 10s by default. The desk publishes a retry again."`

	LaneNames             []string      `group:"Lanes" env:"DOCKET_LANES" unit:"lanes, by comma" text:"Lanes beside the default one: urgent, bulk or both. Each is a topic with a consumer group of its own. Give all programs the same value."`
	KafkaUrgentTopic      string        `env:"DOCKET_KAFKA_URGENT_TOPIC" unit:"topic" text:"Topic of the urgent lane. If it is not set: DOCKET_KAFKA_TOPIC with -urgent behind it."`
	KafkaBulkTopic        string        `env:"DOCKET_KAFKA_BULK_TOPIC" unit:"topic" text:"Topic of the bulk lane. If it is not set: DOCKET_KAFKA_TOPIC with -bulk behind it."`
	UrgentGroup           string        `for:"consumer,parking-replayer,docket" env:"DOCKET_URGENT_GROUP" unit:"consumer group" text:"Consumer group of the urgent lane. If it is not set: DOCKET_KAFKA_GROUP with -urgent behind it."`
	BulkGroup             string        `for:"consumer,parking-replayer,docket" env:"DOCKET_BULK_GROUP" unit:"consumer group" text:"Consumer group of the bulk lane. If it is not set: DOCKET_KAFKA_GROUP with -bulk behind it."`
	UrgentBatchMaxRecords int           `for:"consumer" env:"DOCKET_URGENT_BATCH_MAX_RECORDS" default:"500" min:"1" max:"100000" unit:"records" text:"Largest batch of the urgent lane, in Kafka records of one partition."`
	UrgentBatchMaxWait    time.Duration `for:"consumer" env:"DOCKET_URGENT_BATCH_MAX_WAIT" default:"20ms" min:"1ms" max:"1m" unit:"duration" text:"How long a batch of the urgent lane waits to fill after its first record."`

	ShardRanges []string `group:"Shards" env:"DOCKET_SHARDS" unit:"NAME=FIRST-LAST, by comma" text:"Several Postgres servers behind one topic, each with a range of its partitions, like a=0-15,b=16-31. A name may have several ranges. Give all programs the same value. Producers must key records by decision_id."`
	ShardName   string   `env:"DOCKET_SHARD" unit:"name of DOCKET_SHARDS" text:"Shard of this process: it works on its partitions and in its database alone. Groups, homes and archives get its name, like docket-a. For the collector: the shard that takes refused decisions."`
	ShardURLs   Secret   `for:"consumer,parking-replayer,docket" env:"DOCKET_SHARD_URLS" unit:"NAME=URL, by white space" text:"Postgres connection of each shard, like a=postgres://… b=postgres://…. It takes the place of DOCKET_DATABASE_URL, and lets docket ask all shards at once."`

	LimitRows     int    `group:"Limits" for:"consumer,parking-replayer,docket" env:"DOCKET_LIMIT_ROWS" default:"0" min:"0" max:"1000000000" unit:"rows a second" text:"Largest number of rows that all processes together write in a second. 0 means no limit. Give all programs the same value."`
	LimitLowRows  int    `for:"consumer,parking-replayer,docket" env:"DOCKET_LIMIT_LOW_ROWS" default:"0" min:"0" max:"1000000000" unit:"rows a second" text:"How many of DOCKET_LIMIT_ROWS the default and bulk lanes, replays and restores may use together. It must be lower. 0 means nine tenths of DOCKET_LIMIT_ROWS."`
	LimitBurst    int    `for:"consumer,parking-replayer,docket" env:"DOCKET_LIMIT_BURST" default:"0" min:"0" max:"1000000000" unit:"rows" text:"Most rows that are granted at once. In no second are more granted than the limit and this. No write is larger. 0 means a tenth of the limit."`
	LimitCalendar string `for:"consumer,parking-replayer,docket" env:"DOCKET_LIMIT_CALENDAR" unit:"HOUR-HOUR=low:ROWS, by comma" text:"Another low limit for hours of the day in UTC, like 19-23=low:150. An entry may end after midnight, like 22-4=low:100."`
	RedisURL      Secret `for:"consumer,parking-replayer,docket" env:"DOCKET_REDIS_URL" unit:"secret" text:"Redis that counts the limits for all processes exactly, as redis://user:password@host:6379/0, rediss:// for TLS, or several nodes of a cluster as redis://host1:6379?addr=host2:6379. Without it, each process takes the share of its partitions. With DOCKET_CACHE_DIR, docket also claims archived days there. It is not used where neither a limit nor DOCKET_CACHE_DIR is set."`

	ParkingBackoff     time.Duration `group:"Parking" for:"consumer,parking-replayer" env:"DOCKET_PARKING_BACKOFF" default:"1m" min:"1ms" max:"168h" unit:"duration" text:"How long a parked record waits before its first replay. The wait doubles with each attempt."`
	ParkingMaxBackoff  time.Duration `for:"consumer,parking-replayer" env:"DOCKET_PARKING_MAX_BACKOFF" default:"1h" min:"1ms" max:"168h" unit:"duration" text:"Longest wait between two replays of a record. Keep the retention of the parking topic well above it."`
	ParkingMaxAttempts int           `for:"consumer,parking-replayer" env:"DOCKET_PARKING_MAX_ATTEMPTS" default:"5" min:"1" max:"1000" unit:"attempts" text:"Replays against a healthy database before a record goes to the parking dead-letter topic."`
	ParkingLookahead   int           `for:"consumer,parking-replayer" env:"DOCKET_PARKING_LOOKAHEAD" default:"10000" min:"1" max:"1000000" unit:"records" text:"How many parked records of one partition the replayer searches for due ones."`

	SpoolDir      string        `group:"Spool" for:"consumer,parking-replayer,docket" env:"DOCKET_SPOOL_DIR" default:"spool/consumer" replayer:"spool/parking-replayer" empty:"no spool" unit:"path" text:"Directory for records that Kafka did not accept. Give each process its own, on a durable disk. Set it to an empty value for no spool: Docket then holds. The program docket looks there for decisions."`
	SpoolMaxBytes Size          `for:"consumer,parking-replayer" env:"DOCKET_SPOOL_MAX_BYTES" default:"1GiB" min:"64KiB" max:"1TiB" unit:"size" text:"Largest size of the spool. DOCKET_SPOOL_ON_FULL says what happens then."`
	SpoolMaxAge   time.Duration `for:"consumer,parking-replayer" env:"DOCKET_SPOOL_MAX_AGE" default:"24h" min:"1s" max:"8760h" unit:"duration" text:"Age of the oldest spool file that raises a warning. If DOCKET_SPOOL_ON_FULL is evict, a file of that age that Kafka still refuses is deleted, and its records are lost."`
	SpoolOnFull   string        `for:"consumer,parking-replayer" env:"DOCKET_SPOOL_ON_FULL" default:"hold" oneof:"hold,evict" unit:"choice" text:"Action when the spool is full: hold, or evict the oldest files. evict loses data and counts it as lost."`

	HTTPAddr        string        `group:"Operation" env:"DOCKET_HTTP_ADDR" default:":8080" replayer:":8081" desk:":8082" collector:":8084" unit:"host:port" text:"Listen address for /healthz, /readyz and /metrics."`
	LogLevel        string        `env:"DOCKET_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" unit:"choice" text:"Lowest level to log. Logs go to standard error."`
	LogFormat       string        `env:"DOCKET_LOG_FORMAT" default:"json" oneof:"json,console" unit:"choice" text:"Log format: json for machines, console for people."`
	ShutdownTimeout time.Duration `env:"DOCKET_SHUTDOWN_TIMEOUT" default:"25s" min:"100ms" max:"30m" unit:"duration" text:"How long a stop may take to finish the current batch or uploads. Unfinished records stay uncommitted and are read again; OPA sends unfinished uploads again."`

	DeskGroup         string        `group:"Desk" for:"docket" env:"DOCKET_DESK_GROUP" default:"docket-desk" unit:"consumer group" text:"Consumer group in which the desk reads both dead-letter topics. verify compares its progress with the ledger."`
	DeskMaxAttempts   int           `for:"docket" env:"DOCKET_DESK_MAX_ATTEMPTS" default:"3" min:"1" max:"1000" unit:"attempts" text:"Failed retries before a dead letter is FAILED. After that, only a person can retry it."`
	DeskMaxEntered    int           `for:"docket" env:"DOCKET_DESK_MAX_ENTERED" default:"100000" min:"0" max:"1000000000" unit:"dead letters" text:"Dead letters of one client that enter the ledger in an hour, all desks together. Others stay in Kafka and enter later, or are archived before Kafka deletes them. 0 means no limit."`
	DeskLease         time.Duration `for:"docket" env:"DOCKET_DESK_LEASE" default:"15m" min:"1s" max:"168h" unit:"duration" text:"How long to wait for the result of a retry before its dead letter is PENDING again."`
	DeskKeepResolved  time.Duration `for:"docket" env:"DOCKET_DESK_KEEP_RESOLVED" default:"168h" min:"1m" max:"87600h" unit:"duration" text:"How long to keep resolved dead letters: 7 days at the least, whatever is set. Their audit entries stay forever."`
	DeskFourEyes      bool          `for:"consumer,parking-replayer,docket" env:"DOCKET_DESK_FOUR_EYES" default:"true" unit:"true or false" text:"Whether a second person has to approve certain edits of a dead letter: those that change decision_id, timestamp, path, result or input. migrate and DOCKET_AUTO_MIGRATE write it to the database, which enforces it. Give all programs that migrate the same value."`
	DeskRelayInterval time.Duration `for:"docket" env:"DOCKET_DESK_RELAY_INTERVAL" default:"1s" min:"10ms" max:"1m" unit:"duration" text:"How often the desk looks for new retries to publish."`
	DeskRelayBatch    int           `for:"docket" env:"DOCKET_DESK_RELAY_BATCH" default:"50" min:"1" max:"1000" unit:"records" text:"Largest number of retries to publish together."`
	DeskRelayTries    int           `for:"docket" env:"DOCKET_DESK_RELAY_TRIES" default:"5" min:"1" max:"1000" unit:"tries" text:"Failed publishes of a retried record before its dead letter is FAILED."`

	DeskRetryInterval   time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_INTERVAL" default:"5m" min:"1s" max:"168h" unit:"duration" text:"Time between two scheduled retries. Each retries the dead letters of the kinds in DOCKET_DESK_RETRY_KINDS."`
	DeskRetryFirst      time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_FIRST" default:"1m" min:"0s" max:"168h" unit:"duration" text:"Time from the start to the first scheduled retry."`
	DeskRetryTopics     []string      `for:"docket" env:"DOCKET_DESK_RETRY_TOPICS" unit:"topics, by comma" text:"Topics that retries may be published to. If it is not set: the topics of all lanes, which without lanes is only DOCKET_KAFKA_TOPIC. A dead letter of another topic becomes FAILED when it is retried."`
	DeskRetryKinds      []string      `for:"docket" env:"DOCKET_DESK_RETRY_KINDS" default:"transient,exhausted" empty:"none" unit:"kinds, by comma" text:"Kinds of failure to retry on schedule: transient, exhausted, data, conflict. Set it to an empty value for none."`
	DeskRetryBackoff    time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_BACKOFF" default:"100ms" min:"1ms" max:"1h" unit:"duration" text:"Pause after a scheduled retry fails. It doubles with each failure in a row."`
	DeskRetryMaxBackoff time.Duration `for:"docket" env:"DOCKET_DESK_RETRY_MAX_BACKOFF" default:"10s" min:"1ms" max:"1h" unit:"duration" text:"Longest pause after a scheduled retry fails."`

	DeskAlertURLs      Secret        `for:"docket" env:"DOCKET_DESK_ALERT_URLS" unit:"URLs, by white space" text:"Where to send alerts and reports besides the log: https://… (a webhook), slack://…, smtp://… or another URL of the shoutrrr library. If it is not set, they go to the log only."`
	DeskAlertThreshold int           `for:"docket" env:"DOCKET_DESK_ALERT_THRESHOLD" default:"10" min:"1" max:"1000000000" unit:"dead letters" text:"Number of unresolved dead letters that raises an alert."`
	DeskAlertInterval  time.Duration `for:"docket" env:"DOCKET_DESK_ALERT_INTERVAL" default:"1m" min:"1s" max:"24h" unit:"duration" text:"Time between two checks for alerts."`
	DeskAlertRepeat    time.Duration `for:"docket" env:"DOCKET_DESK_ALERT_REPEAT" default:"1h" min:"1s" max:"168h" unit:"duration" text:"Time before an alert that still holds is sent again."`
	DeskReportInterval time.Duration `for:"docket" env:"DOCKET_DESK_REPORT_INTERVAL" default:"10m" min:"1s" max:"168h" unit:"duration" text:"Time between two reports. A report is sent only if dead letters are unresolved."`

	DeskAPIAddr     string   `for:"docket" env:"DOCKET_DESK_API_ADDR" default:"127.0.0.1:8083" empty:"no API" unit:"host:port" text:"Listen address of the HTTP API. Set it to an empty value for no API."`
	DeskAPITokens   Secret   `for:"docket" env:"DOCKET_DESK_API_TOKENS" unit:"name:role:token, by white space" text:"API users, each as name:role:token, with 16 or more characters in the token. sha256: and the hexadecimal SHA-256 can replace a token; :until= and a date or time after it says when it expires. A viewer lists, an auditor also reads stored payloads, an operator also retries and resolves, an admin also starts jobs of over 1,000 dead letters. Without tokens and client certificates, the API refuses every request."`
	DeskAPITLSCert  string   `for:"docket" env:"DOCKET_DESK_API_TLS_CERT" unit:"path, PEM" text:"TLS certificate of the API. Required if it listens beyond loopback."`
	DeskAPITLSKey   string   `for:"docket" env:"DOCKET_DESK_API_TLS_KEY" unit:"path, PEM" text:"Private key of the API's certificate."`
	DeskAPIClientCA string   `for:"docket" env:"DOCKET_DESK_API_CLIENT_CA" unit:"path, PEM" text:"CA certificates for client certificates (mTLS) of the API."`
	DeskAPIClients  []string `for:"docket" env:"DOCKET_DESK_API_CLIENTS" unit:"name:role, by comma" text:"Common names of client certificates, each with its role, as in DOCKET_DESK_API_TOKENS."`
	DeskConsole     bool     `for:"docket" env:"DOCKET_DESK_CONSOLE" default:"true" unit:"true or false" text:"Whether the desk serves its web console beside the API, at DOCKET_DESK_API_ADDR. It does so only where the API has users, or DOCKET_DESK_OIDC_ISSUER is set. Sessions are kept in the table desk_sessions."`
	DeskPeers       []string `for:"docket" env:"DOCKET_DESK_PEERS" unit:"addresses, by comma" text:"DOCKET_HTTP_ADDR of the other programs, as http://host:port, https://host:port or dns:name:port. The last means every address of a name. The console reads their /readyz and /metrics while somebody looks. Without it the console says that it does not see them."`

	DeskOIDCIssuer       string        `for:"docket" env:"DOCKET_DESK_OIDC_ISSUER" unit:"URL" text:"OpenID Connect provider for logins to the console, as it names itself. https, or http on loopback."`
	DeskOIDCClientID     string        `for:"docket" env:"DOCKET_DESK_OIDC_CLIENT_ID" unit:"name" text:"The console's client at the provider."`
	DeskOIDCClientSecret Secret        `for:"docket" env:"DOCKET_DESK_OIDC_CLIENT_SECRET" unit:"secret" text:"Secret of that client. Several desks behind one address need it, and a change of it ends the sessions. Without it, a public client is assumed, and a restart of the desk ends the sessions."`
	DeskOIDCRedirectURL  string        `for:"docket" env:"DOCKET_DESK_OIDC_REDIRECT_URL" unit:"URL" text:"Address of the console for browsers, with the path /login/callback. Register it at the provider."`
	DeskOIDCGroups       []string      `for:"docket" env:"DOCKET_DESK_OIDC_GROUPS" unit:"group:role, by comma" text:"Groups at the provider, each with its role, as in DOCKET_DESK_API_TOKENS. Somebody with several has the highest role, and without one cannot log in."`
	DeskOIDCClaim        string        `for:"docket" env:"DOCKET_DESK_OIDC_CLAIM" default:"groups" unit:"name" text:"Claim of the ID token with the groups."`
	DeskOIDCName         string        `for:"docket" env:"DOCKET_DESK_OIDC_NAME" default:"preferred_username" unit:"name" text:"Claim of the ID token with the name for the audit, which writes oidc: before it. Choose one that people cannot change themselves."`
	DeskOIDCScopes       []string      `for:"docket" env:"DOCKET_DESK_OIDC_SCOPES" default:"openid,profile" unit:"scope, by comma" text:"Scopes to ask for. Some providers need groups or email."`
	DeskOIDCLabel        string        `for:"docket" env:"DOCKET_DESK_OIDC_LABEL" default:"single sign-on" unit:"text" text:"Name of the provider on the login page."`
	DeskOIDCSession      time.Duration `for:"docket" env:"DOCKET_DESK_OIDC_SESSION" default:"4h" min:"5m" max:"12h" unit:"duration" text:"How long a session by OpenID Connect lasts at most. A change of somebody's groups at the provider counts from the next login."`
	DeskOIDCCA           string        `for:"docket" env:"DOCKET_DESK_OIDC_CA" unit:"path, PEM" text:"CA certificates for the provider. If it is not set, Docket uses those of the system."`

	Operator string `for:"docket" env:"DOCKET_OPERATOR" unit:"name" text:"Your name for the audit log, if --operator is not given."`

	Server        string `group:"Command line" for:"docket" env:"DOCKET_SERVER" unit:"URL" text:"Desk that commands ask in place of the database, as https://desk.example:8083. --server wins, and a context of docket context is used where neither is set. It cannot be set together with DOCKET_DATABASE_URL."`
	Token         Secret `for:"docket" env:"DOCKET_TOKEN" unit:"secret" text:"Your token for the desk, an entry of its DOCKET_DESK_API_TOKENS without name and role. It is sent to the desk of DOCKET_SERVER or --server alone, or to that of DOCKET_CONTEXT if its context has no token."`
	ServerTLSCA   string `for:"docket" env:"DOCKET_SERVER_TLS_CA" unit:"path, PEM" text:"CA certificates for the certificate of the desk. If it is not set, Docket uses those of the system."`
	ServerTLSCert string `for:"docket" env:"DOCKET_SERVER_TLS_CERT" unit:"path, PEM" text:"Client certificate for the desk, in place of a token or beside it."`
	ServerTLSKey  string `for:"docket" env:"DOCKET_SERVER_TLS_KEY" unit:"path, PEM" text:"Private key of the client certificate for the desk."`
	ServerPlain   bool   `for:"docket" env:"DOCKET_SERVER_PLAIN" default:"false" unit:"true or false" text:"Whether the token may be sent over http:// to a host that is not this one. Anybody on the way can read it then."`
	Context       string `for:"docket" env:"DOCKET_CONTEXT" unit:"name" text:"Context of docket context that commands use. If it is not set: the one of docket context use."`

	ReaderSubject    string   `group:"Reader" for:"docket" env:"DOCKET_READER_SUBJECT" default:"requested_by:host" unit:"subject" text:"Field that identifies the subject of a decision: requested_by, requested_by:host, label:NAME or input:/POINTER."`
	ReaderExtractors []string `for:"docket" env:"DOCKET_READER_EXTRACTORS" unit:"PATH=ROLE:/POINTER, by comma" text:"Where to find a ROLE in the results of a PATH. ROLE is allow, deny, reasons, policies, rules or subject. /POINTER is a JSON pointer into result, empty for all of it; for subject it points into input and must not be empty. PATH/* covers all paths below PATH."`

	States          bool          `group:"States" for:"docket" env:"DOCKET_STATES" default:"false" unit:"true or false" text:"Whether the desk keeps the newest answer of each subject and path, and its changes, for state and flips. Subjects are found by DOCKET_READER_SUBJECT and DOCKET_READER_EXTRACTORS."`
	StatesMax       int           `for:"docket" env:"DOCKET_STATES_MAX" default:"1000000" min:"1" max:"1000000000" unit:"states" text:"Largest number of states. Further subjects have none, because senders can invent subjects without end."`
	StatesIdle      time.Duration `for:"docket" env:"DOCKET_STATES_IDLE" default:"2160h" min:"1h" max:"87600h" unit:"duration" text:"How long to keep a state whose subject makes no decision on its path."`
	StatesKeepFlips time.Duration `for:"docket" env:"DOCKET_STATES_KEEP_FLIPS" default:"8760h" min:"1h" max:"87600h" unit:"duration" text:"How long to keep flips, the changes of a verdict."`
	StatesWatch     string        `for:"docket" env:"DOCKET_STATES_WATCH" unit:"subject=…;path=…" text:"Subjects and paths whose flips raise an alert, like subject=alice,bob;path=admin/*. First denials of a path and revisions that deny more raise one in any case."`

	ArchiveTo          string `group:"Archive" for:"docket" env:"DOCKET_ARCHIVE_TO" unit:"path or s3://bucket/prefix" text:"Directory or bucket for archived days. Needed by archive and restore, unless --to or --from names it. With it, logs, why, where-is and the desk answer from archived days. The desk archives dead letters there that Kafka is about to delete and that had no room in the ledger."`
	ArchiveAfter       string `for:"docket" env:"DOCKET_ARCHIVE_AFTER" unit:"days, like 90d" text:"Age from which on the desk archives days by itself and drops them from the table, like docket archive --older-than. If it is not set, only the command archives days."`
	ArchiveHours       string `for:"docket" env:"DOCKET_ARCHIVE_HOURS" unit:"HH:MM-HH:MM ZONE" text:"Quiet hours in which the desk archives days, like 01:00-05:00 or 22:30-04:00 Europe/Berlin. Without a zone they are in UTC. If it is not set: any time."`
	ArchiveDatabaseURL Secret `for:"docket" env:"DOCKET_ARCHIVE_DATABASE_URL" unit:"secret" text:"Postgres connection by which the desk archives days, to the same database as a role that owns decision_logs. If it is not set: the connection of the desk."`
	ArchiveClasses     string `for:"docket" env:"DOCKET_ARCHIVE_CLASSES" unit:"DAYS:CLASS, by comma" text:"Storage classes of the files in a bucket by the age of their day, like 0:STANDARD,90:GLACIER_IR. A class that cannot be read at once is refused. If it is not set: the class of the bucket."`
	ArchiveS3Endpoint  string `for:"docket" env:"DOCKET_ARCHIVE_S3_ENDPOINT" default:"https://s3.amazonaws.com" unit:"URL" text:"Endpoint of the S3 object storage. Use http:// only on a private network."`
	ArchiveS3Region    string `for:"docket" env:"DOCKET_ARCHIVE_S3_REGION" default:"us-east-1" unit:"text" text:"Region of the bucket."`
	ArchiveS3AccessKey string `for:"docket" env:"DOCKET_ARCHIVE_S3_ACCESS_KEY" unit:"text" text:"Access key of the object storage. If it is not set, Docket uses the identity of the machine."`
	ArchiveS3SecretKey Secret `for:"docket" env:"DOCKET_ARCHIVE_S3_SECRET_KEY" unit:"secret" text:"Secret key for DOCKET_ARCHIVE_S3_ACCESS_KEY."`
	ArchiveS3CA        string `for:"docket" env:"DOCKET_ARCHIVE_S3_CA" unit:"path, PEM" text:"CA certificates for the object storage. If it is not set, Docket uses those of the system."`

	CacheDir   string `for:"docket" env:"DOCKET_CACHE_DIR" unit:"path" text:"Directory for archived files from object storage that are asked for often. Processes that share it also hand over results of archived days there. It gets payloads: give it to this user alone. If it is not set, each question reads the archive."`
	CacheBytes Size   `for:"docket" env:"DOCKET_CACHE_BYTES" default:"10GiB" min:"1MiB" max:"64TiB" unit:"size" text:"Limit of the files in DOCKET_CACHE_DIR for all processes together, besides 64 MiB of results. A larger archived file is not kept."`

	CollectorAddr        string        `group:"Collector" for:"collector" env:"DOCKET_COLLECTOR_ADDR" default:"127.0.0.1:8085" unit:"host:port" text:"Listen address for uploads from OPA: POST /logs, or any path that OPA's resource names."`
	CollectorTokens      Secret        `for:"collector" env:"DOCKET_COLLECTOR_TOKENS" unit:"name:token, by white space" text:"Bearer tokens for uploads, each as name:token, with 16 or more characters in the token. Hashes and :until= are as in DOCKET_DESK_API_TOKENS."`
	CollectorTLSCert     string        `for:"collector" env:"DOCKET_COLLECTOR_TLS_CERT" unit:"path, PEM" text:"TLS certificate for uploads. Required beyond loopback, unless DOCKET_COLLECTOR_PLAINTEXT is true."`
	CollectorTLSKey      string        `for:"collector" env:"DOCKET_COLLECTOR_TLS_KEY" unit:"path, PEM" text:"Private key of DOCKET_COLLECTOR_TLS_CERT."`
	CollectorClientCA    string        `for:"collector" env:"DOCKET_COLLECTOR_CLIENT_CA" unit:"path, PEM" text:"CA certificates for client certificates (mTLS) of uploads."`
	CollectorClients     []string      `for:"collector" env:"DOCKET_COLLECTOR_CLIENTS" unit:"names, by comma" text:"Names of client certificates that may upload: SPIFFE IDs, common names or DNS names. If it is not set, every certificate of DOCKET_COLLECTOR_CLIENT_CA may."`
	CollectorClientsFile string        `for:"collector" env:"DOCKET_COLLECTOR_CLIENTS_FILE" unit:"path, JSON" text:"File that names the labels.id and paths that each client may upload, by the name of its token or certificate. If it is not set, every client may upload every decision."`
	CollectorPlaintext   bool          `for:"collector" env:"DOCKET_COLLECTOR_PLAINTEXT" default:"false" unit:"true or false" text:"Accept uploads without TLS beyond loopback. Use it only on a private network."`
	CollectorAnonymous   bool          `for:"collector" env:"DOCKET_COLLECTOR_ANONYMOUS" default:"false" unit:"true or false" text:"Accept uploads beyond loopback without token or client certificate."`
	CollectorUrgent      string        `for:"collector" env:"DOCKET_COLLECTOR_URGENT" unit:"verdict=…;path=…;label:NAME=…" text:"Decisions that go to the urgent lane: those that one of these conditions is true for. Values are separated by comma, and * at the end of a path matches any rest, like verdict=denied,error;path=admin/*;label:tenant=acme."`
	CollectorShare       string        `for:"collector" env:"DOCKET_COLLECTOR_SHARE" unit:"label:NAME=NUMBER/s, by semicolon" text:"Share of each value of a label, in decisions a second, like label:id=2000/s;label:tenant=10000/s. A sender's decisions beyond it go to the bulk lane. With client=NUMBER/s each token, certificate or address has a share. With urgent=NUMBER/s each sender has that share in the urgent lane, 200/s by default. Each collector has its own shares."`
	CollectorKey         string        `for:"collector" env:"DOCKET_COLLECTOR_KEY" default:"requested_by" unit:"subject" text:"Record key, which keeps the order of decisions of one subject: requested_by, requested_by:host, label:NAME, input:/POINTER or decision_id. Decisions without this value are keyed by decision_id."`
	CollectorDrop        []string      `for:"collector" env:"DOCKET_COLLECTOR_DROP" unit:"JSON pointers, by comma" text:"Values to remove from each decision before it reaches Kafka, like /input/password. The removed pointers are added to the field erased of the decision."`
	CollectorMask        []string      `for:"collector" env:"DOCKET_COLLECTOR_MASK" unit:"JSON pointers, by comma" text:"Values to replace by **REDACTED** in each decision before it reaches Kafka. The replaced pointers are added to the field masked of the decision."`
	CollectorUploadBytes Size          `for:"collector" env:"DOCKET_COLLECTOR_UPLOAD_BYTES" default:"8MiB" min:"1KiB" max:"256MiB" unit:"size" text:"Largest upload as received. A larger one is answered 413."`
	CollectorInflated    Size          `for:"collector" env:"DOCKET_COLLECTOR_INFLATED_BYTES" default:"64MiB" min:"1KiB" max:"1GiB" unit:"size" text:"Largest upload after decompression. A larger one is answered 413."`
	CollectorUploads     int           `for:"collector" env:"DOCKET_COLLECTOR_UPLOADS" default:"512" min:"1" max:"10000" unit:"uploads" text:"Largest number of concurrent uploads. Further ones are answered 429."`
	CollectorMemory      Size          `for:"collector" env:"DOCKET_COLLECTOR_MEMORY" default:"256MiB" min:"1MiB" max:"1TiB" unit:"size" text:"Memory for all concurrent uploads, as received and decompressed. Uploads that do not fit are answered 429."`
	CollectorBodyTimeout time.Duration `for:"collector" env:"DOCKET_COLLECTOR_BODY_TIMEOUT" default:"15s" min:"100ms" max:"10m" unit:"duration" text:"Time limit for receiving the body of an upload."`
	CollectorRetryAfter  time.Duration `for:"collector" env:"DOCKET_COLLECTOR_RETRY_AFTER" default:"2s" min:"1s" max:"1h" unit:"duration" text:"Value of Retry-After in answers with 429 and 503, rounded up to whole seconds."`

	files  map[string]string // of secrets that came from a file: variable to path
	shards shards.Map        // of ShardRanges
	asked  bool              // DatabaseURL is that of the shard in ShardURLs
	base   *Settings         // before the names of the shard were added; nil: these
}

// HeaderKeys are those that prove headers; settings that were loaded have valid ones.
func (s Settings) HeaderKeys() envelope.Keys {
	keys, err := envelope.ParseKeys(s.HeaderKey.Reveal())
	if err != nil {
		panic("settings that were not loaded: " + err.Error())
	}
	return keys
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
