package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/fallback"
	"docket/internal/record/commitnote"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// spool makes a [Spool] of the fallback's.
type spool struct {
	spool *fallback.Spool
	homes []string // the topics that it publishes to
	log   zerolog.Logger
}

func openSpool(s config.Settings, o Options, log zerolog.Logger) (*spool, error) {
	disk := o.Disk
	if disk == nil {
		disk = fallback.OS(s.SpoolDir)
	}
	sp, err := fallback.Open(spoolConfig(s, o.Instance), disk, log)
	if err != nil {
		return nil, &SpoolError{Err: err}
	}
	return &spool{sp, []string{s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic}, log}, nil
}

// SpoolError says that the spool's directory cannot be used. A program that runs without the home it was set up with
// would find out in the worst moment, so it does not start.
type SpoolError struct{ Err error }

func (e *SpoolError) Error() string {
	return fmt.Sprintf("DOCKET_SPOOL_DIR cannot be used: %v; set it empty to go without a spool", e.Err)
}

// Unwrap gives the cause.
func (e *SpoolError) Unwrap() error { return e.Err }

func (s *spool) Append(ctx context.Context, records []*kgo.Record, oversize bool) error {
	lines := make([]fallback.Line, len(records))
	for i, r := range records {
		lines[i] = fallback.Line{Record: r, Oversize: oversize}
	}
	return s.spool.Append(ctx, lines)
}

func (s *spool) Run(ctx context.Context, idle func() bool, p pipeline.Publisher) error {
	return s.spool.Run(ctx, idle, &late{p, s.homes, s.log, map[string]bool{}})
}

// late publishes what waited in the spool as of now, as a forwarded record's Kafka timestamp is the time of forwarding:
// with that of the failure, a topic that keeps its records for less than they waited would delete them at once. It refuses
// records for other topics than those of the settings: with these settings nobody reads such a topic.
type late struct {
	pipeline.Publisher
	homes []string
	log   zerolog.Logger
	told  map[string]bool // topics that were logged
}

var errOtherTopic = errors.New("the settings do not name its topic")

func (l *late) Publish(ctx context.Context, records []*kgo.Record) []error {
	now, errs := time.Now(), make([]error, len(records))
	var ours []*kgo.Record
	var places []int
	for i, r := range records {
		if !slices.Contains(l.homes, r.Topic) {
			errs[i] = errOtherTopic
			l.tell(r.Topic)
			continue
		}
		r.Timestamp = now // they were read from the file for this one call
		ours, places = append(ours, r), append(places, i)
	}
	if len(ours) == 0 {
		return errs
	}
	answers := l.Publisher.Publish(ctx, ours)
	if len(answers) != len(ours) {
		return nil // it is not known which were taken, so the file stays
	}
	for i, at := range places {
		errs[at] = answers[i]
	}
	return errs
}

func (l *late) tell(topic string) {
	if l.told[topic] {
		return
	}
	l.told[topic] = true
	l.log.Warn().Str(telemetry.KeyTopic, topic).
		Str("hint", "no program with these settings reads that topic; start this program with the former names of its topics until the spool is empty, see docs/spool.md").
		Msg("spooled records for other topic kept")
}

// held is what a commit says of the spool.
func (s *spool) held() (of commitnote.Spool, known bool) {
	id, since, holds := s.spool.Held()
	return commitnote.Spool{ID: id, Since: since, Holds: holds}, id != ""
}

func (s *spool) Stats() telemetry.Spool {
	st := s.spool.Stats()
	return telemetry.Spool{
		Files: st.Files, Bytes: st.Bytes, Oldest: st.Oldest, Oversize: int64(st.OversizeRecords),
		Recovered: int64(st.RecoveredRecords), Dropped: int64(st.DroppedRecords), Corrupt: int64(st.CorruptFiles), MaxBytes: s.spool.MaxBytes(),
	}
}
