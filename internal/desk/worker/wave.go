package worker

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"docket/internal/desk/ledger"
)

// keyLine identifies records that must keep their order: those of a topic with one key.
type keyLine struct{ topic, key string }

// lineOf returns the key line of a row. A record without a key has none.
func lineOf(s ledger.Sending) (l keyLine, inOne bool) {
	return keyLine{s.Topic, string(s.Key)}, s.Key != nil
}

// nextWave takes the first row of every key line, and all rows without one.
func nextWave(rows []ledger.Sending) (wave, rest []ledger.Sending) {
	going := map[keyLine]bool{}
	for _, s := range rows {
		l, inOne := lineOf(s)
		if inOne && going[l] {
			rest = append(rest, s)
			continue
		}
		if inOne {
			going[l] = true
		}
		wave = append(wave, s)
	}
	return wave, rest
}

// without returns rows without those behind a failed one of their key line.
func without(rows, failed []ledger.Sending) []ledger.Sending {
	stuck := map[keyLine]bool{}
	for _, s := range failed {
		if l, inOne := lineOf(s); inOne {
			stuck[l] = true
		}
	}
	var free []ledger.Sending
	for _, s := range rows { // each has a key line, because the others went with the first wave
		if l, _ := lineOf(s); !stuck[l] {
			free = append(free, s)
		}
	}
	return free
}

// Codes of records that Kafka did not take.
const (
	codeTooLarge     = "too_large"
	codeTopicMissing = "topic_missing"
	codeNotAllowed   = "not_allowed"
	codeUnanswered   = "unanswered"
	codeUnreachable  = "unreachable"
	// CodeForeignTopic says that retries may not go to the topic of the dead letter.
	CodeForeignTopic = "foreign_topic"
	codeOther        = "other"
)

var refusalCodes = []struct {
	err  error
	code string
}{
	{ErrForeignTopic, CodeForeignTopic},
	{kerr.MessageTooLarge, codeTooLarge},
	{kerr.RecordListTooLarge, codeTooLarge},
	{kerr.UnknownTopicOrPartition, codeTopicMissing},
	{kerr.UnknownTopicID, codeTopicMissing},
	{kerr.TopicAuthorizationFailed, codeNotAllowed},
	{kerr.ClusterAuthorizationFailed, codeNotAllowed},
	{kerr.SaslAuthenticationFailed, codeNotAllowed},
	{kerr.UnsupportedSaslMechanism, codeNotAllowed},
	{kerr.IllegalSaslState, codeNotAllowed},
	{kerr.PolicyViolation, codeNotAllowed},
	{ErrUnanswered, codeUnanswered},
	{context.DeadlineExceeded, codeUnanswered},
	{kerr.RequestTimedOut, codeUnanswered},
	{kerr.NotEnoughReplicas, codeUnanswered},
	{kerr.NotEnoughReplicasAfterAppend, codeUnanswered},
	{kerr.NetworkException, codeUnreachable},
	{kerr.BrokerNotAvailable, codeUnreachable},
	{kerr.LeaderNotAvailable, codeUnreachable},
	{kerr.NotLeaderForPartition, codeUnreachable},
}

// codeOf says in one word why Kafka did not take a record. Errors without an answer of a broker are network errors.
func codeOf(err error) string {
	for _, c := range refusalCodes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	if told := (*kerr.Error)(nil); errors.As(err, &told) {
		return codeOther
	}
	return codeUnreachable
}

// remedyOf says what to do before somebody retries a letter that Kafka did not take for this reason.
func remedyOf(code string) string {
	switch code {
	case codeTooLarge:
		return "raise max.message.bytes of the topic, or edit the payload, and retry the dead letter; it is FAILED"
	case codeTopicMissing:
		return "create the topic, and retry the dead letter; it is FAILED"
	case codeNotAllowed:
		return "correct the ACLs, the policy or the login of the desk at the brokers, and retry the dead letter; it is FAILED"
	}
	return "retry the dead letter when the brokers are healthy; it is FAILED"
}
