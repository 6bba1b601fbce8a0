package collector

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"

	"docket/internal/service/telemetry"
)

// State is whether decisions find a home, for /readyz.
type State struct {
	Ready              bool
	Reason, Code, Hint string // why not; empty where Ready
	Topic              string // that took nothing; empty where it is none alone
}

// Why decisions find no home; words as those of a hold.
const (
	stateDraining       = "draining"
	stateUnreachable    = "kafka_unreachable"
	stateTopicMissing   = "kafka_topic_missing"
	stateAuthorization  = "kafka_authorization"
	stateAuthentication = "kafka_authentication"
	stateOther          = "kafka_other"
)

var standings = []struct {
	err                error
	reason, code, hint string
}{
	{kerr.UnknownTopicOrPartition, stateTopicMissing, "UNKNOWN_TOPIC_OR_PARTITION", "create the topic"},
	{kerr.UnknownTopicID, stateTopicMissing, "UNKNOWN_TOPIC_ID", "create the topic"},
	{kerr.TopicAuthorizationFailed, stateAuthorization, "TOPIC_AUTHORIZATION_FAILED", "grant WRITE on the topic"},
	{kerr.ClusterAuthorizationFailed, stateAuthorization, "CLUSTER_AUTHORIZATION_FAILED", "grant IDEMPOTENT_WRITE on the cluster"},
	{kerr.SaslAuthenticationFailed, stateAuthentication, "SASL_AUTHENTICATION_FAILED", "look at the SASL settings"},
	{kerr.UnsupportedSaslMechanism, stateAuthentication, "UNSUPPORTED_SASL_MECHANISM", "look at the SASL settings"},
	{kerr.IllegalSaslState, stateAuthentication, "ILLEGAL_SASL_STATE", "look at the SASL settings"},
	{kerr.NotEnoughReplicas, stateOther, "NOT_ENOUGH_REPLICAS", "too few replicas are in sync for min.insync.replicas: look at the brokers"},
	{kerr.NotEnoughReplicasAfterAppend, stateOther, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "too few replicas are in sync for min.insync.replicas: look at the brokers"},
	{kerr.PolicyViolation, stateOther, "POLICY_VIOLATION", "the brokers' policy does not allow it"},
	{context.DeadlineExceeded, stateUnreachable, "timeout", "no broker acknowledged in time: check the brokers and the network"},
}

// standing tells by type why the brokers did not take a record.
func standing(err error) State {
	s := State{Reason: stateUnreachable, Code: "network", Hint: "check the brokers and the network"}
	if told, ok := errors.AsType[*kerr.Error](err); ok {
		s = State{Reason: stateOther, Code: told.Message, Hint: "check the brokers"}
	}
	for _, known := range standings {
		if errors.Is(err, known.err) {
			s = State{Reason: known.reason, Code: known.code, Hint: known.hint}
			break
		}
	}
	if knows, ok := errors.AsType[hinting](err); ok && knows.Hint() != "" {
		s.Hint = knows.Hint()
	}
	return s
}

// hinting is an error that says what an operator can do.
type hinting interface {
	error
	Hint() string
}

// longestRest is how long no upload is asked for after many failures in a row.
const longestRest = 30 * time.Second

// outages are the topics that took nothing last.
type outages struct {
	rest time.Duration // after the first failure
	now  func() time.Time
	log  zerolog.Logger

	mu    sync.Mutex
	since map[string]*outage // by topic
}

type outage struct {
	State
	told  map[string]bool // reasons, each once: one that is away is refused, and times out, by turns
	rest  time.Duration
	until time.Time
}

// failed notes that a topic did not take what it ought to.
func (o *outages) failed(topic string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, s := o.now(), standing(err)
	out := o.since[topic]
	if out == nil {
		out = &outage{rest: o.rest, told: map[string]bool{}}
		o.since[topic] = out
	} else if now.After(out.until) { // those that fail together are one failure
		out.rest = min(2*out.rest, longestRest)
	}
	if !out.told[s.Reason] {
		out.told[s.Reason] = true
		o.log.Error().Str(telemetry.KeyTopic, topic).Str(telemetry.KeyReason, s.Reason).Str(telemetry.KeyCode, s.Code).
			Str(telemetry.KeyHint, s.Hint).Msg("kafka stopped accepting decisions")
	}
	s.Topic = topic
	out.State = s
	out.until = now.Add(out.rest)
}

// took notes that a topic took something.
func (o *outages) took(topic string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since[topic] != nil {
		delete(o.since, topic)
		o.log.Info().Str(telemetry.KeyTopic, topic).Msg("kafka accepted decisions again")
	}
}

// state is that of the topic that rests longest.
func (o *outages) state() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	worst := o.now()
	s := State{Ready: true}
	for _, out := range o.since {
		if out.until.After(worst) {
			worst, s = out.until, out.State
		}
	}
	return s
}
