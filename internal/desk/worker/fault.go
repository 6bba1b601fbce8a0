package worker

import (
	"time"

	"docket/internal/errclass"
)

// Reasons of a fault.
const (
	holdDatabaseAway    = "database_away"
	holdDatabaseRefuses = "database_refuses"
	holdReadOnly        = "read_only"
)

type partitionKey struct {
	topic     string
	partition int32
}

// intakeFault says why a partition of a dead-letter topic is not read.
type intakeFault struct {
	reason, code, hint string
	since              time.Time
	release            func() // from the observer
}

// Fault says why dead letters are not entered, and since when. An empty reason means that they are. code is a
// SQLSTATE or one of Docket's codes. Of several partitions it reports the longest fault.
func (in *Intake) Fault() (reason, code, hint string, since time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, f := range in.faults {
		if since.IsZero() || f.since.Before(since) {
			reason, code, hint, since = f.reason, f.code, f.hint, f.since
		}
	}
	return reason, code, hint, since
}

// failed notes a fault of a partition. An outage is one event: it is logged when it begins and when its reason
// changes, for all partitions together.
func (in *Intake) failed(p partitionKey, err error) {
	now := intakeFaultOf(err)
	now.since = time.Now()
	in.mu.Lock()
	defer in.mu.Unlock()
	was, standing := in.faults[p]
	switch {
	case standing && was.reason == now.reason:
		now.since, now.release = was.since, was.release
	case standing:
		was.release()
		now.since, now.release = was.since, in.observer.Held(now.reason)
	default:
		now.release = in.observer.Held(now.reason)
	}
	in.faults[p] = now
	if in.told.reason != now.reason || in.told.code != now.code {
		in.told = now
		in.log.Error().Err(err).Str("reason", now.reason).Str("code", now.code).Str("hint", now.hint).Str("topic", p.topic).
			Int32("partition", p.partition).Msg("dead-letter intake stopped")
	}
}

// recovered notes that a partition is read again, or is no longer assigned.
func (in *Intake) recovered(p partitionKey) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if f, standing := in.faults[p]; standing {
		f.release()
		delete(in.faults, p)
	}
	if len(in.faults) == 0 && in.told.reason != "" {
		in.log.Warn().Str("reason", in.told.reason).Dur("took", time.Since(in.told.since)).Msg("dead-letter intake resumed")
		in.told = intakeFault{}
	}
}

func intakeFaultOf(err error) intakeFault {
	v := errclass.Classify(err)
	f := intakeFault{code: v.Code}
	switch {
	case v.Code == "25006":
		f.reason, f.hint = holdReadOnly, "point the desk at the primary: this node is read-only; the desk continues by itself"
	case v.Code == errclass.CodeDescriptors:
		f.reason, f.hint = holdDatabaseAway, v.Name+": "+v.Why+" Raise its limit, or find out what holds them; the desk continues by itself"
	case v.Class == errclass.Systemic || v.Class == errclass.Data:
		f.reason, f.hint = holdDatabaseRefuses, v.Name+": "+v.Why+" Check that the migrations are applied, and the grants of the desk's role; the desk continues by itself"
	default:
		f.reason, f.hint = holdDatabaseAway, "check that Postgres runs and can be reached; the desk continues by itself"
	}
	return f
}
