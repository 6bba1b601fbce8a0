package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// RelayConfig says how the outbox is published.
type RelayConfig struct {
	Holder   string        // owner of claims, different for each relay
	Topics   []string      // allowed destinations; a letter's own headers name its topic, and strangers may have written them
	Interval time.Duration // between two looks at an empty outbox
	Batch    int           // rows that are claimed together
	Tries    int           // failed publishes of a row before its letter is FAILED
	Lease    time.Duration // of a claim; longer than a publish takes. 0: a minute
	Extend   time.Duration // of the letter's lease after its record is published
	// Backoff is before the second try of a row. It doubles with each try, up to MaxBackoff. 0: 1 s and 30 s.
	Backoff, MaxBackoff time.Duration
	Observer            Observer      // nil: none
	Keys                envelope.Keys // they sign records
}

// Relay publishes records to be retried. Several can run at once, on several desks.
//
// A record may be published more than once: its answer was lost, the relay was killed before it noted the publish, or
// a claim expired. That is harmless, because a decision is stored once by its identity, and a retry ends once by its
// mark.
type Relay struct {
	cfg       RelayConfig
	ledger    ledger.Relay
	publisher Publisher
	log       zerolog.Logger
	observer  Observer
}

// NewRelay makes a relay.
func NewRelay(cfg RelayConfig, l ledger.Relay, p Publisher, log zerolog.Logger) *Relay {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&cfg.Interval, time.Second)
	set(&cfg.Lease, time.Minute)
	set(&cfg.Backoff, time.Second)
	set(&cfg.MaxBackoff, 30*time.Second)
	cfg.Batch, cfg.Tries = max(cfg.Batch, 1), max(cfg.Tries, 1)
	return &Relay{cfg: cfg, ledger: l, publisher: p, log: log, observer: observed(cfg.Observer)}
}

// Run publishes until ctx ends, and returns nil then. Rows that are claimed and not published are free again when the
// lease of the claim ends.
func (r *Relay) Run(ctx context.Context) error {
	t := trouble{log: r.log, work: "publishing retried records"}
	return t.repeat(ctx, r.cfg.Interval, func(ctx context.Context) (more bool, err error) {
		claimed, err := r.round(ctx)
		return claimed == r.cfg.Batch, err
	})
}

// round claims once and publishes the claimed rows. The error is the ledger's.
func (r *Relay) round(ctx context.Context) (claimed int, err error) {
	until := time.Now().Add(r.cfg.Lease) // earlier than the database's deadline, so never too late
	rows, err := r.ledger.Claim(ctx, r.cfg.Holder, r.cfg.Batch, r.cfg.Lease)
	if err != nil {
		return 0, err
	}
	return len(rows), r.publish(ctx, rows, until)
}

// publish sends rows in waves, to keep the order of each key. A wave has each key at most once, and begins after the
// one before was answered. After a failed row the others of its key wait, claimed, until the lease ends. The ledger
// hands them out no sooner than that row.
func (r *Relay) publish(ctx context.Context, rows []ledger.Sending, until time.Time) error {
	for len(rows) > 0 && ctx.Err() == nil {
		if time.Until(until) < r.cfg.Lease/2 {
			return nil // others may have them before they are sent
		}
		wave, rest := nextWave(rows)
		failed, err := r.send(ctx, wave, until)
		if err != nil {
			return err
		}
		rows = without(rest, failed)
	}
	return nil
}

// send publishes a wave and notes the results. It returns the rows that were not taken.
func (r *Relay) send(ctx context.Context, wave []ledger.Sending, until time.Time) (failed []ledger.Sending, err error) {
	places, errs := r.place(ctx, wave)
	var placed []ledger.Placed
	var why []error
	for i, s := range wave {
		if errs[i] == nil {
			placed = append(placed, ledger.Placed{SendingID: s.ID, Partition: places[i].Partition, Offset: places[i].Offset})
			continue
		}
		failed, why = append(failed, s), append(why, errs[i])
	}
	if len(placed) > 0 {
		r.observer.Published(len(placed), 0, 0)
		err := r.mark(ctx, until, func(ctx context.Context) error {
			return r.ledger.Published(ctx, r.cfg.Holder, placed, r.cfg.Extend)
		})
		if err != nil {
			return failed, err
		}
	}
	if ctx.Err() != nil {
		return failed, nil //nolint:nilerr // we stop: that is no failure of a record
	}
	for i, s := range failed {
		if err := r.notTaken(ctx, s, why[i], until); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// ErrForeignTopic says that a retry was not published because retries may not go to its topic.
var ErrForeignTopic = errors.New("the topic is neither that of a lane nor one of DOCKET_DESK_RETRY_TOPICS")

// place publishes a wave, except for rows with a foreign topic.
func (r *Relay) place(ctx context.Context, wave []ledger.Sending) ([]Place, []error) {
	places, errs := make([]Place, len(wave)), make([]error, len(wave))
	var ours []ledger.Sending
	var at []int
	for i, s := range wave {
		if !slices.Contains(r.cfg.Topics, s.Topic) {
			errs[i] = ErrForeignTopic
			continue
		}
		ours, at = append(ours, s), append(at, i)
	}
	if len(ours) == 0 {
		return places, errs
	}
	placed, failed := r.publisher.Place(ctx, retryRecords(ours, r.cfg.Keys))
	for i, to := range at {
		places[to], errs[to] = placed[i], failed[i]
	}
	return places, errs
}

// notTaken postpones a row, or gives it up. Every failed publish counts, also transient ones. With doubling pauses
// only a long outage makes letters FAILED. A FAILED letter waits for a person, who sees the reason and can retry the
// group at once. A letter with endless tries would look like one on its way.
func (r *Relay) notTaken(ctx context.Context, s ledger.Sending, why error, until time.Time) error {
	code, foreign := codeOf(why), errors.Is(why, ErrForeignTopic)
	giveUp := foreign || s.Tries+1 >= r.cfg.Tries
	pause := doubling(r.cfg.Backoff, r.cfg.MaxBackoff, s.Tries)
	e := r.log.Warn().Err(why).Str("code", code).Str("topic", s.Topic).Str("dead_letter_id", s.LetterID).Int("try", s.Tries+1)
	switch {
	case foreign:
		r.observer.Published(0, 0, 1)
		e.Str("hint", "if this is the topic of a lane, name the lane in DOCKET_LANES and retry; if retries may go to this topic, add it to DOCKET_DESK_RETRY_TOPICS and retry; else find out who wrote this dead letter").Msg("retry refused, not a source topic")
	case giveUp:
		r.observer.Published(0, 0, 1)
		e.Str("hint", remedyOf(code)).Msg("retry failed at its last publish")
	default:
		r.observer.Published(0, 1, 0)
		e.Dur("pause", pause).Msg("retried record not published")
	}
	return r.mark(ctx, until, func(ctx context.Context) error {
		return r.ledger.Unpublished(ctx, r.cfg.Holder, s.ID, code, pause, giveUp)
	})
}

// markAnyway limits the time to note results after the program stops, or after the claim of the rows ended.
const markAnyway = 5 * time.Second

// mark notes results, and retries while the claim of the rows lasts, at least for [markAnyway]. A record that is
// published and not marked is published again. The error is the ledger's last.
func (r *Relay) mark(ctx context.Context, until time.Time, write func(context.Context) error) error {
	if least := time.Now().Add(markAnyway); until.Before(least) {
		until = least
	}
	writing, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(markAnyway):
			cancel()
		case <-writing.Done():
		}
	})()
	for try := 0; ; try++ {
		err := write(writing)
		if err == nil || errors.Is(err, ledger.ErrLost) { // the new owner of the row notes its result
			return nil
		}
		if idle(writing, doubling(50*time.Millisecond, longestPause, try)) {
			return err
		}
	}
}

func retryRecords(wave []ledger.Sending, keys envelope.Keys) []*kgo.Record {
	now := time.Now()
	out := make([]*kgo.Record, len(wave))
	for i, s := range wave {
		headers := make([]kgo.RecordHeader, 0, len(s.Headers)+1)
		for _, h := range s.Headers {
			headers = append(headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		headers = append(headers, kgo.RecordHeader{Key: envelope.RetryOf, Value: []byte(s.Mark)})
		out[i] = &kgo.Record{Topic: s.Topic, Key: s.Key, Value: s.Value, Headers: headers, Timestamp: now}
		keys.Sign(out[i])
	}
	return out
}
