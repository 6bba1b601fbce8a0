package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Reason is the kind of a [FaultError].
type Reason string

// The kinds of faults of a cluster.
const (
	ReasonUnreachable    Reason = "unreachable"     // no broker answers
	ReasonTLS            Reason = "tls"             // the TLS handshake fails
	ReasonAuthentication Reason = "authentication"  // SASL credentials are refused
	ReasonAuthorization  Reason = "authorization"   // an ACL is missing
	ReasonTopicMissing   Reason = "topic_missing"   // the topic does not exist
	ReasonTopicRecreated Reason = "topic_recreated" // the topic was deleted and created again: its offsets mean other records
	ReasonOutOfRange     Reason = "out_of_range"    // the offset to continue from is no longer in the log
	ReasonTruncated      Reason = "truncated"       // the log lost records that were read before
	ReasonUnreadable     Reason = "unreadable"      // a set of records is damaged, or of an unknown kind
	ReasonSetTooLarge    Reason = "set_too_large"   // a set of records takes too much memory when opened
	ReasonGroup          Reason = "group"           // the group does not accept this member
	ReasonUnowned        Reason = "unowned"         // no shard has the partition
	ReasonOther          Reason = "other"           // anything else; the code names it
)

var hints = map[Reason]string{
	ReasonUnreachable:    "check the broker addresses, the network and that the brokers run; a broker that closes connections at once may require TLS or SASL",
	ReasonTLS:            "check that the brokers expect TLS, the CA file, the names in the certificate and its dates",
	ReasonAuthentication: "check the SASL user name and password, and that the broker has that user for this mechanism; a password file is read again at the next attempt",
	ReasonAuthorization:  "grant the missing ACL",
	ReasonTopicMissing:   "create the topic; reading starts by itself",
	ReasonTopicRecreated: "the topic was deleted and made again: reset the group's offsets for it",
	ReasonOutOfRange:     "records were deleted before they were read: reset the group's offset of this partition to the start of the log",
	ReasonTruncated:      "the partition lost records in an unclean leader election, and a restart alone finds the same: compare the table with the topic, then reset the group's offset of this partition to where the log was cut",
	ReasonUnreadable:     "inspect the records with a console consumer; to skip them, stop the program and move the group's offset",
	ReasonSetTooLarge:    "one set of records takes more memory once it is opened than a set may: raise DOCKET_BATCH_MAX_BYTES to a quarter of it, with the memory for that, and restart; or skip the set",
	ReasonGroup:          "check the group's name, its other members' protocol and the timeouts that the brokers allow",
	ReasonUnowned:        "give them to a shard in DOCKET_SHARDS of all programs, and restart all",
	ReasonOther:          "see the brokers' logs",
}

// inconsistentHint is the advice where the members of a group do not agree how to share partitions.
const inconsistentHint = "another member of the group has other shards, or is not Docket: give all programs the same DOCKET_SHARDS, give each shard its own group, and stop members with the old setting before others start"

// FaultError is a lasting reason why something cannot be read or asked. Its text contains no message of a broker.
type FaultError struct {
	Reason    Reason
	Act       string // the act that failed
	Topic     string // empty if it concerns no topic
	Partition int32  // -1 if it concerns no partition
	Offset    int64  // where reading stopped; -1 if not known
	Code      string // Kafka's name of the error or one of Docket's codes, or empty
	Resource  string // the resource that lacks an ACL, as in "topic decision-logs"; empty for other reasons
	Operation string // the ACL's operation, as in "READ"; empty for other reasons
	Hint      string // advice for an operator
	Err       error
}

func (e *FaultError) Error() string {
	text := e.Act
	if e.Topic != "" {
		text += " " + e.Topic
		if e.Partition >= 0 {
			text += fmt.Sprintf("/%d", e.Partition)
		}
	}
	if e.Offset >= 0 {
		text += fmt.Sprintf(" at offset %d", e.Offset)
	}
	text += ": " + string(e.Reason)
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	if e.Operation != "" {
		text += ": no " + e.Operation + " on " + e.Resource
	}
	if d := (*dialError)(nil); errors.As(e.Err, &d) {
		text += ": " + d.Error()
	}
	return text + "; " + e.Hint
}

func (e *FaultError) Unwrap() error { return e.Err }

// fault wraps err in a FaultError, unless it is one already.
func fault(act, topic string, partition int32, err error) *FaultError {
	if f := (*FaultError)(nil); errors.As(err, &f) {
		return f
	}
	f := &FaultError{Reason: reasonOf(err), Act: act, Topic: topic, Partition: partition, Offset: -1, Err: err}
	if k := (*kerr.Error)(nil); errors.As(err, &k) {
		f.Code = k.Message
	}
	if large := (*kgo.ErrDecompressTooLarge)(nil); errors.As(err, &large) {
		f.Offset = large.Offset
	}
	if loss := (*kgo.ErrDataLoss)(nil); errors.As(err, &loss) {
		f.Offset = loss.ResetTo
	}
	f.Hint = hints[f.Reason]
	if d := (*dialError)(nil); f.Code == "" && errors.As(err, &d) && d.code != "" {
		f.Code, f.Hint = d.code, tlsHints[d.code]
	}
	if early := (*kgo.ErrFirstReadEOF)(nil); f.Code == "" && f.Reason == ReasonUnreachable && errors.As(err, &early) {
		f.Code, f.Hint = codeClosedAtOnce, tlsHints[codeClosedAtOnce]
	}
	if errors.Is(err, errLoginAnswer) {
		f.Code, f.Hint = codeLoginAnswer, loginAnswerHint
	}
	switch f.Code {
	case kerr.InconsistentGroupProtocol.Message:
		f.Hint = inconsistentHint
	case kerr.UnsupportedSaslMechanism.Message:
		f.Hint = "the listener does not offer that mechanism: set DOCKET_KAFKA_SASL_MECHANISM to one of its sasl.enabled.mechanisms"
	case kerr.TopicAuthorizationFailed.Message:
		return f.missing("READ", "topic", topic)
	}
	return f
}

// resetting adds the command to reset the committed offset to the hint, if only that repairs the fault.
func (e *FaultError) resetting(brokers []string, group string) *FaultError {
	to := "--to-earliest" // records that were stored before are duplicates when read again
	large := (*kgo.ErrDecompressTooLarge)(nil)
	switch {
	case errors.As(e.Err, &large):
		to = fmt.Sprintf("--to-offset %d", large.NextOffset)
	case e.Partition < 0 || e.Topic == "":
		return e
	case e.Reason == ReasonTruncated && e.Offset >= 0:
		to = fmt.Sprintf("--to-offset %d", e.Offset)
	case e.Reason != ReasonTopicRecreated && e.Reason != ReasonOutOfRange && e.Reason != ReasonTruncated:
		return e
	}
	e.Hint += fmt.Sprintf("; stop all members of the group, run `kafka-consumer-groups.sh --bootstrap-server %s --group %s --topic %s:%d --reset-offsets %s --execute`, start them again",
		strings.Join(brokers, ","), group, e.Topic, e.Partition, to)
	return e
}

// missing names the ACL that would repair a fault of ReasonAuthorization.
func (e *FaultError) missing(operation, kind, name string) *FaultError {
	if e.Reason != ReasonAuthorization || name == "" {
		return e
	}
	e.Resource, e.Operation = kind+" "+name, operation
	e.Hint = grant(operation, kind, name)
	return e
}

// grant returns the advice for a missing ACL.
func grant(operation, kind, name string) string {
	return "grant the principal " + operation + " on the " + kind + " " + name + " (kafka-acls.sh --add --allow-principal User:NAME --operation " + operation + " --" + kind + " " + name + ")"
}

// ofGroup wraps err of a request about a group.
func ofGroup(act, group, topic string, partition int32, err error) *FaultError {
	f := fault(act, topic, partition, err)
	if f.Code == kerr.GroupAuthorizationFailed.Message {
		return f.missing("READ", "group", group)
	}
	return f
}

var reasonsByCode = map[*kerr.Error]Reason{
	kerr.SaslAuthenticationFailed:           ReasonAuthentication,
	kerr.UnsupportedSaslMechanism:           ReasonAuthentication,
	kerr.IllegalSaslState:                   ReasonAuthentication,
	kerr.TopicAuthorizationFailed:           ReasonAuthorization,
	kerr.GroupAuthorizationFailed:           ReasonAuthorization,
	kerr.ClusterAuthorizationFailed:         ReasonAuthorization,
	kerr.TransactionalIDAuthorizationFailed: ReasonAuthorization,
	kerr.UnknownTopicOrPartition:            ReasonTopicMissing,
	kerr.UnknownTopicID:                     ReasonTopicRecreated,
	kerr.InconsistentTopicID:                ReasonTopicRecreated,
	kerr.OffsetOutOfRange:                   ReasonOutOfRange,
	kerr.CorruptMessage:                     ReasonUnreadable,
	kerr.UnsupportedCompressionType:         ReasonUnreadable,
	kerr.InconsistentGroupProtocol:          ReasonGroup,
	kerr.InvalidSessionTimeout:              ReasonGroup,
	kerr.InvalidGroupID:                     ReasonGroup,
	kerr.GroupMaxSizeReached:                ReasonGroup,
	kerr.FencedInstanceID:                   ReasonGroup,
	kerr.BrokerNotAvailable:                 ReasonUnreachable,
	kerr.NetworkException:                   ReasonUnreachable,
	kerr.CoordinatorNotAvailable:            ReasonUnreachable,
}

func reasonOf(err error) Reason {
	var (
		code     *kerr.Error
		dial     *dialError
		loss     *kgo.ErrDataLoss
		large    *kgo.ErrDecompressTooLarge
		op       *net.OpError
		netErr   net.Error
		group    *kgo.ErrGroupSession
		byCode   Reason
		haveCode = errors.As(err, &code)
	)
	if haveCode {
		byCode = reasonsByCode[code]
	}
	switch {
	case byCode != "":
		return byCode
	case errors.Is(err, errLoginAnswer):
		return ReasonAuthentication
	case errors.As(err, &dial) && dial.tls:
		return ReasonTLS
	case errors.As(err, &loss):
		return ReasonTruncated
	case errors.As(err, &large):
		return ReasonSetTooLarge
	case errors.As(err, &op) && op.Op == "remote error":
		return ReasonTLS // an alert after the handshake: so a broker refuses a certificate
	case dial != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr):
		return ReasonUnreachable
	case errors.As(err, &group):
		return ReasonGroup
	}
	return ReasonOther
}
