package config

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"docket/internal/desk/client/address"
	"docket/internal/record/envelope"
)

// relations looks at what a single value does not show: its form, and whether the settings agree with each other.
func (l *loader) relations() {
	l.brokers()
	l.lanes()
	l.shards()
	l.topics()
	l.groups()
	l.sasl()
	l.headerKey()
	l.tls()
	l.database()
	l.timing()
	l.parking()
	l.limits()
	l.spool()
	l.http()
	switch l.program {
	case Desk:
		l.deskRetries()
		l.deskAPI()
		l.deskPeers()
		l.server()
		l.archive()
		l.nightly()
	case Collector:
		l.uploads()
		l.uploaders()
		l.uploadSizes()
		l.routing()
	}
}

// server judges the desk that commands ask, as their client does. The URL is printed, so it must hold no secret.
func (l *loader) server() {
	const server = "DOCKET_SERVER"
	if s := l.settings; s.Server != "" && l.fine(server, "DOCKET_SERVER_PLAIN") {
		if _, err := address.Parse(s.Server, s.ServerPlain); err != nil {
			l.complain(server, "%v", err)
		}
	}
}

func (l *loader) brokers() {
	for i, b := range l.settings.KafkaBrokers {
		// The entry itself is not shown: somebody may have pasted a URL with a password.
		if !hostPort(b, 1) {
			l.complain("DOCKET_KAFKA_BROKERS", "entry %d is not host:port; write it like kafka-1:9092,kafka-2:9092", i+1)
			return
		}
	}
}

func hostPort(s string, lowest int) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, "/@ ") || (host == "" && lowest > 0) {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= lowest && n <= 65535
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// isTopicName reports whether Kafka accepts this as the name of a topic.
func isTopicName(name string) bool { return topicName.MatchString(name) && name != "." && name != ".." }

func (l *loader) topics() {
	s := l.settings
	topics := []named{
		{"DOCKET_KAFKA_TOPIC", s.KafkaTopic},
		{"DOCKET_KAFKA_DLQ_TOPIC", s.KafkaDLQTopic},
		{"DOCKET_KAFKA_PARKING_TOPIC", s.KafkaParkingTopic},
		{"DOCKET_KAFKA_PARKING_DLQ_TOPIC", s.KafkaParkingDLQTopic},
	}
	for _, lane := range s.Lanes()[1:] {
		topics = append(topics, named{laneVariable("DOCKET_KAFKA_%s_TOPIC", lane.Lane), lane.Topic})
	}
	first := map[string]string{}
	for _, t := range topics {
		if !l.fine(t.variable) {
			continue // another program's
		}
		if !isTopicName(t.name) {
			l.complain(t.variable, "%s is not a topic name; use up to 249 of A-Z a-z 0-9 . _ -", quote(t.name))
			continue
		}
		if other, taken := first[t.name]; taken {
			l.complain(t.variable, "%s is already the topic of %s; each home needs its own topic", quote(t.name), other)
			continue
		}
		first[t.name] = t.variable
	}
}

func (l *loader) groups() {
	s := l.settings
	if l.fine("DOCKET_KAFKA_GROUP", "DOCKET_PARKING_GROUP") && s.KafkaGroup == s.ParkingGroup {
		l.complain("DOCKET_PARKING_GROUP", "%s is already the group of DOCKET_KAFKA_GROUP; consumer and replayer read different topics", quote(s.ParkingGroup))
	}
	others := []named{{"DOCKET_KAFKA_GROUP", s.KafkaGroup}, {"DOCKET_PARKING_GROUP", s.ParkingGroup}}
	for _, lane := range s.Lanes()[1:] {
		variable := laneVariable("DOCKET_%s_GROUP", lane.Lane)
		for _, other := range others {
			if l.fine(variable) && lane.Group == other.name {
				l.complain(variable, "%s is already the group of %s; each lane needs its own group", quote(lane.Group), other.variable)
			}
		}
		others = append(others, named{variable, lane.Group})
	}
	const desk = "DOCKET_DESK_GROUP"
	for _, other := range others {
		if l.fine(desk) && s.DeskGroup == other.name {
			l.complain(desk, "%s is already the group of %s; the desk reads other topics", quote(s.DeskGroup), other.variable)
		}
	}
}

// named is the name of a topic or a group, with the variable that sets it.
type named struct{ variable, name string }

// headerKey asks for keys that prove something.
func (l *loader) headerKey() {
	const variable, how = "DOCKET_HEADER_KEY", "make one with: openssl rand -hex 32"
	keys, err := envelope.ParseKeys(l.settings.HeaderKey.Reveal())
	switch {
	case err != nil:
		l.complain(variable, "%v; %s", err, how)
	case keys.None() && l.settings.HeaderKey != "": // nothing would be proven, and nobody would notice
		l.complain(variable, "has no key; %s", how)
	}
}

func (l *loader) sasl() {
	const mechanism, username, password = "DOCKET_KAFKA_SASL_MECHANISM", "DOCKET_KAFKA_SASL_USERNAME", "DOCKET_KAFKA_SASL_PASSWORD"
	s := l.settings
	given := map[string]bool{mechanism: s.KafkaSASLMechanism != "", username: s.KafkaSASLUsername != "", password: s.KafkaSASLPassword != ""}
	if !given[mechanism] && !given[username] && !given[password] {
		return
	}
	for _, v := range []string{mechanism, username, password} {
		if !given[v] && l.fine(v) {
			l.complain(v, "is missing; a login needs %s, %s and %s", mechanism, username, password)
		}
	}
}

func (l *loader) tls() {
	const on, ca, cert, key = "DOCKET_KAFKA_TLS", "DOCKET_KAFKA_TLS_CA", "DOCKET_KAFKA_TLS_CERT", "DOCKET_KAFKA_TLS_KEY"
	s := l.settings
	if !s.KafkaTLS {
		for variable, path := range map[string]string{ca: s.KafkaTLSCA, cert: s.KafkaTLSCert, key: s.KafkaTLSKey} {
			if path != "" && l.fine(on) {
				l.complain(variable, "is set while %s is false; set %s=true, or remove this setting", on, on)
			}
		}
		return
	}
	if s.KafkaTLSCA != "" {
		if _, err := authorities(s.KafkaTLSCA); err != nil {
			l.complain(ca, "%v", err)
		}
	}
	switch {
	case s.KafkaTLSCert == "" && s.KafkaTLSKey == "":
	case s.KafkaTLSCert == "":
		l.complain(cert, "is missing; %s needs its certificate", key)
	case s.KafkaTLSKey == "":
		l.complain(key, "is missing; %s needs its private key", cert)
	default:
		l.pair(cert, s.KafkaTLSCert, key, s.KafkaTLSKey)
	}
}

// database looks at the form itself; what the URL means is up to the driver. No error of a parser is shown, as they
// quote what they could not read.
func (l *loader) database() {
	const name = "DOCKET_DATABASE_URL"
	text := l.settings.DatabaseURL.Reveal()
	if text == "" || !l.fine(name) {
		return
	}
	if scheme, _, isURL := strings.Cut(text, "://"); isURL && !strings.Contains(scheme, "=") {
		if _, err := url.Parse(text); err != nil {
			l.complain(name, "is not a valid URL; percent-encode special characters in its password")
		} else if scheme != "postgres" && scheme != "postgresql" {
			l.complain(name, "does not begin with postgres:// or postgresql://")
		}
	} else if !strings.Contains(text, "=") {
		l.complain(name, "is neither postgres://user:password@host:5432/database nor key=value words")
	}
}

func (l *loader) timing() {
	const session, rebalance = "DOCKET_KAFKA_SESSION_TIMEOUT", "DOCKET_KAFKA_REBALANCE_TIMEOUT"
	s := l.settings
	if l.fine(session, rebalance) && s.KafkaSessionTimeout >= s.KafkaRebalanceTimeout {
		l.complain(session, "%v is not shorter than %s (%v)", s.KafkaSessionTimeout, rebalance, s.KafkaRebalanceTimeout)
	}
	const shutdown = "DOCKET_SHUTDOWN_TIMEOUT"
	if l.fine(shutdown, rebalance) && s.ShutdownTimeout >= s.KafkaRebalanceTimeout*8/10 {
		l.complain(shutdown, "%v does not fit into 80%% of %s (%v); the group would not wait for the current batch", s.ShutdownTimeout, rebalance, s.KafkaRebalanceTimeout)
	}
	const most = 10
	if l.fine("DOCKET_RETRY_PAUSES") && len(s.RetryPauses) > most {
		l.complain("DOCKET_RETRY_PAUSES", "has %d pauses; allowed: up to %d", len(s.RetryPauses), most)
	}
	if !l.fine(rebalance, "DOCKET_STORE_TIMEOUT", "DOCKET_RETRY_PAUSES", "DOCKET_PUBLISH_TIMEOUT") {
		return
	}
	if budget, limit := s.RetryBudget(), s.KafkaRebalanceTimeout*8/10; budget > limit {
		l.complain(rebalance, "a batch may take %v (%d attempts of DOCKET_STORE_TIMEOUT %v, DOCKET_RETRY_PAUSES, DOCKET_PUBLISH_TIMEOUT %v, %v for the spool), "+
			"but 80%% of %v is %v; raise it to %v or more, or lower the others",
			budget, s.Tries(), s.StoreTimeout, s.PublishTimeout, SpoolAllowance, s.KafkaRebalanceTimeout, limit, roundUp(budget*10/8))
	}
}

func roundUp(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func (l *loader) parking() {
	const first, most = "DOCKET_PARKING_BACKOFF", "DOCKET_PARKING_MAX_BACKOFF"
	const ahead, batch = "DOCKET_PARKING_LOOKAHEAD", "DOCKET_BATCH_MAX_RECORDS"
	s := l.settings
	if l.fine(first, most) && s.ParkingBackoff > s.ParkingMaxBackoff {
		l.complain(first, "%v is longer than %s (%v)", s.ParkingBackoff, most, s.ParkingMaxBackoff)
	}
	if l.fine(ahead, batch) && s.ParkingLookahead < s.BatchMaxRecords {
		l.complain(ahead, "%d is less than %s (%d); a batch is chosen from the records searched", s.ParkingLookahead, batch, s.BatchMaxRecords)
	}
}

func (l *loader) spool() {
	const bytes = "DOCKET_SPOOL_MAX_BYTES"
	s := l.settings
	if s.SpoolDir == "" {
		return // of the programs that have none, too
	}
	if strings.ContainsRune(s.SpoolDir, 0) || strings.TrimSpace(s.SpoolDir) == "" {
		l.complain("DOCKET_SPOOL_DIR", "is not a path; set it to an empty value for no spool")
	}
	if l.fine(bytes, "DOCKET_BATCH_MAX_BYTES") && s.SpoolMaxBytes < s.BatchMaxBytes {
		l.complain(bytes, "%v is less than DOCKET_BATCH_MAX_BYTES (%v); the spool must hold at least one batch", s.SpoolMaxBytes, s.BatchMaxBytes)
	}
}

func (l *loader) http() {
	if !hostPort(l.settings.HTTPAddr, 0) {
		l.complain("DOCKET_HTTP_ADDR", "%s is not host:port; write it like :8080 or 127.0.0.1:8080", quote(l.settings.HTTPAddr))
	}
}
