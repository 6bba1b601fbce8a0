package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/shards"
)

// SourceConfig says what is read and in which portions. Topic and Group are required.
type SourceConfig struct {
	// Topic is read as a member of Group (group.id).
	Topic, Group string
	// BatchRecords limits the records of a batch. Default 500.
	BatchRecords int
	// BatchBytes limits the memory of a batch: keys, values and headers. One larger record comes alone. Default 8
	// MiB.
	BatchBytes int64
	// BatchWait is how long a batch waits for more after its first record. Zero takes the records that are there.
	BatchWait time.Duration
	// BufferBytes limits the memory of the queues of all partitions: keys, values and headers. Each has an equal
	// share, and is paused when its share is full. Fetched batches have the same limit; beyond it a batch has half of
	// a share. All fetched records, in the client too, take at most twice BufferBytes, or BufferBytes plus
	// MaxDecompressBytes. Default 5 times BatchBytes.
	BufferBytes int64
	// BufferBatches limits the batches of a partition that are fetched ahead, if its share allows more. Default 2.
	BufferBatches int
	// Drain is how long a batch in hand may be carried on after leaving began. It must be below 80% of the rebalance
	// timeout. Default half of the rebalance timeout.
	Drain time.Duration
	// FetchMaxBytes limits one answer of a broker on the wire (fetch.max.bytes). Default 1 MiB.
	FetchMaxBytes int32
	// FetchMaxPartitionBytes limits the part of one partition in it (max.partition.fetch.bytes). A larger set of
	// records comes alone. Default 256 KiB.
	FetchMaxPartitionBytes int32
	// FetchWait is how long a broker without new records may delay an answer (fetch.max.wait.ms). Default 500 ms.
	FetchWait time.Duration
	// MaxConcurrentFetches limits the answers that are requested or held ahead. Default 4.
	MaxConcurrentFetches int
	// MaxDecompressBytes limits the memory of one set of records, inflated and with its records and headers. Beyond
	// it the partition stops with a fault. Default 32 MiB.
	MaxDecompressBytes int
	// Once ends Run when every assigned partition is done.
	Once bool
	// Due returns when a record may be carried; zero: at once. Memory for one record beyond the limits is kept for those
	// that are due. It must not change the record. Default: all are due.
	Due func(*kgo.Record) time.Time
	// WatchInterval is the pause between two checks of the partitions' ends and of faults. Default 10 s, and a fifth
	// of it during a fault.
	WatchInterval time.Duration
	// Needs are topics that must exist before anything is read, because failed records go there. A missing one is a
	// fault until it appears. Default none.
	Needs []string
	// Memory is shared with other sources of the process; nil: this one is alone. The sum of their BufferBytes is then
	// the buffer of all.
	Memory *Memory
	// Role names the client in metrics and log lines. Sources of one process need different ones. Default "source".
	Role string
	// RetentionOf are the topics whose retention [Source.Retention] returns. Default none.
	RetentionOf []string
	// Notes gives the texts that are committed beside offsets. Default none.
	Notes Notes
}

// Notes are texts beside committed offsets (offset metadata). Both methods are called while commits wait, and must not wait.
type Notes interface {
	// Text is the note for the next commit. A commit asks for it after its records have their homes.
	Text() string
	// Met is called with the offset that the group has of a partition and the text beside it, before anything is committed
	// there.
	Met(offset int64, text string)
}

func (sc SourceConfig) withDefaults(cfg Config) SourceConfig {
	set(&sc.BatchRecords, 500)
	set(&sc.BatchBytes, 8<<20)
	set(&sc.BufferBytes, 5*sc.BatchBytes)
	set(&sc.BufferBatches, 2)
	set(&sc.Drain, cfg.RebalanceTimeout/2)
	set(&sc.FetchMaxBytes, 1<<20)
	set(&sc.FetchMaxPartitionBytes, 256<<10)
	set(&sc.FetchWait, 500*time.Millisecond)
	set(&sc.MaxConcurrentFetches, 4)
	set(&sc.MaxDecompressBytes, 32<<20)
	set(&sc.Role, "source")
	set(&sc.WatchInterval, 10*time.Second)
	return sc
}

func (sc SourceConfig) validate(cfg Config) error {
	var errs []error
	if sc.Topic == "" || sc.Group == "" {
		errs = append(errs, errors.New("topic and group must be named"))
	}
	if sc.BatchRecords < 1 || sc.BatchBytes < 1 || sc.BufferBatches < 1 || sc.BufferBytes < 1 || sc.BatchWait < 0 {
		errs = append(errs, errors.New("batch limits must be positive"))
	}
	if sc.Drain >= cfg.RebalanceTimeout*8/10 {
		errs = append(errs, fmt.Errorf("a drain of %v does not fit into 80%% of the rebalance timeout of %v", sc.Drain, cfg.RebalanceTimeout))
	}
	return errors.Join(errs...)
}

// Source reads one topic as a member of a group.
type Source struct {
	cfg      Config
	sc       SourceConfig
	logger   zerolog.Logger
	client   *clientLog
	stage    *stage
	spare    *spare
	inflater *inflater
	room     *room
	complete bool // every topic of Needs was seen; used by Run only
	faults   clientFaults
	keeping  keeping
	// partitions is the number that the topic has; 0 while it is not known.
	partitions atomic.Int64
	// unowned is the number of partitions that no shard has.
	unowned atomic.Int64
	// committed is the time of the last accepted commit, in Unix nanoseconds; 0 before the first.
	committed atomic.Int64
	// unnoted says that the broker took no note.
	unnoted atomic.Bool
	polled  func() // called after a poll, before its records are queued; tests widen the gap here

	mu      sync.Mutex
	session *session // nil while there is none
	end     context.CancelCauseFunc
	closed  bool
}

// Handler carries the records of one partition. Its context ends when the partition is lost, or when leaving took
// longer than SourceConfig.Drain. It may return nil only when there is nothing more to do, or once
// [Assignment.Leaving] is done.
type Handler func(ctx context.Context, a *Assignment) error

var errClosed = errors.New("the source is closed")

// NewSource checks the settings. It does not connect. The client's metrics are registered in reg, unless reg is nil.
func NewSource(cfg Config, sc SourceConfig, logger zerolog.Logger, reg prometheus.Registerer) (*Source, error) {
	cfg = cfg.withDefaults()
	sc = sc.withDefaults(cfg)
	if err := errors.Join(cfg.validate(), sc.validate(cfg)); err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	s := &Source{
		cfg: cfg, sc: sc, polled: func() {},
		logger: logger.With().Str("group", sc.Group).Str("instance", cfg.InstanceLabel).Logger(),
		client: cfg.quiet(logger, sc.Role),
	}
	s.faults.logger = s.logger
	s.room = newRoom(sc)
	s.spare = newSpare(sc.MaxDecompressBytes, s.room)
	if sc.Memory != nil {
		s.spare.keep(int(min(spareBytes, sc.BufferBytes/4)))
	}
	var err error
	if s.inflater, err = newInflater(s.spare); err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	err = kgo.ValidateOpts(s.options(context.Background(), &session{source: s})...)
	if err == nil {
		s.stage, err = newStage(reg, sc.Role)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	return s, nil
}

// share returns the part of the topic that the group reads; nil: all of it.
func (s *Source) share() *shards.Share { return s.cfg.Shares[s.sc.Topic] }

func (s *Source) options(base context.Context, sess *session) []kgo.Opt {
	return s.cfg.options(s.client, append(s.stage.play(),
		kgo.WithContext(base),
		kgo.WithHooks(&s.faults),
		kgo.ConsumerGroup(s.sc.Group),
		kgo.Balancers(balancerOf(s.share())),
		kgo.SessionTimeout(s.cfg.SessionTimeout),
		kgo.RebalanceTimeout(s.cfg.RebalanceTimeout),
		kgo.HeartbeatInterval(s.cfg.HeartbeatInterval),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(sess.assigned),
		kgo.OnPartitionsRevoked(sess.revoked),
		kgo.OnPartitionsLost(sess.lost),
		kgo.OnOffsetsFetched(sess.fetched),
		kgo.AdjustFetchOffsetsFn(sess.offsets),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // a jump over lost records would be silent
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // they show how far the log was read; they are not queued
		kgo.FetchMaxBytes(s.sc.FetchMaxBytes),
		kgo.FetchMaxPartitionBytes(s.sc.FetchMaxPartitionBytes),
		kgo.BrokerMaxReadBytes(max(100<<20, 2*s.sc.FetchMaxBytes)),
		kgo.FetchMaxWait(s.sc.FetchWait),
		kgo.MaxConcurrentFetches(s.sc.MaxConcurrentFetches),
		kgo.WithDecompressor(s.inflater),
		kgo.WithPools(s.spare),
		plainly(newDialer(s.cfg, s.client).dial, s.sc),
	)...)
}

// sessionPause is the least time between the starts of two sessions.
const sessionPause = time.Second

// Run reads until ctx ends. It calls handle for every assigned partition, each in its own goroutine. It returns after
// every handler has returned and the group was left. It returns nil if ctx ended, if Close was called, or if
// SourceConfig.Once is set and every assigned partition is done. Otherwise it returns the error of a handler whose
// partition was still assigned.
//
// When ctx ends, nothing more is fetched and every assignment is told to leave. Batches in hand may be carried on for
// SourceConfig.Drain, with heartbeats until then. If the group silently made this client another member, everything
// in hand is given up uncommitted, and reading begins again.
func (s *Source) Run(ctx context.Context, handle Handler) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.mu.Lock()
	if s.closed || s.end != nil {
		s.mu.Unlock()
		return errClosed
	}
	s.end = end
	s.mu.Unlock()

	for {
		err := s.runSession(ctx, handle)
		if broken := (*brokenError)(nil); !errors.As(err, &broken) {
			return err
		}
		s.logger.Warn().Str("code", codeOf(err)).Msg("group membership lost")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sessionPause):
		}
	}
}

func (s *Source) runSession(ctx context.Context, handle Handler) error {
	sess, err := newSession(ctx, s, handle)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.session = sess
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.session = nil
		s.mu.Unlock()
	}()
	return sess.run(ctx)
}

// Close ends Run like the end of its context. It does not wait.
func (s *Source) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.end != nil {
		s.end(errClosed)
	}
}

// Assigned returns the number of assigned partitions.
func (s *Source) Assigned() int {
	n := 0
	for _, a := range s.assignments() {
		if a.leaving.Err() == nil {
			n++
		}
	}
	return n
}

// Partitions returns the number of partitions of the topic, with those of other members, and without those of other
// shards. It is 0 until the brokers told it, and follows a change within SourceConfig.WatchInterval.
func (s *Source) Partitions() int { return int(s.partitions.Load()) }

// Unowned returns the number of partitions of the topic that no shard has, and nobody reads. It is 0 without shards.
func (s *Source) Unowned() int { return int(s.unowned.Load()) }

// Joined reports whether the group gave this member an assignment, maybe an empty one, and still knows it.
func (s *Source) Joined() bool {
	s.mu.Lock()
	sess := s.session
	s.mu.Unlock()
	if sess == nil {
		return false
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return sess.joined && sess.broken == nil && !sess.stopping
}

// Fault returns the first of Faults; nil if there is none.
func (s *Source) Fault() error {
	for _, f := range s.Faults() {
		return f
	}
	return nil
}

// Faults returns the lasting reasons why nothing, or not every partition, can be read. Each is a [*FaultError]. One that
// concerns all partitions hides those of single ones.
func (s *Source) Faults() (all []error) {
	if f := s.faults.first(); f != nil {
		return []error{f}
	}
	for _, f := range s.faults.commits() {
		all = append(all, f)
	}
	for _, a := range s.assignments() {
		if f := a.fault(); f != nil {
			all = append(all, f)
		}
	}
	if f := s.faults.of(faultUnowned); f != nil {
		all = append(all, f)
	}
	return all
}

// PartitionLag says how far a partition is behind.
type PartitionLag struct {
	Topic     string
	Partition int32
	Lag       int64 // records between the committed offset and the last readable one
	// Oldest is the earliest Kafka timestamp of fetched and uncommitted records; zero: there is none.
	Oldest time.Time
	// Stuck says that a fault keeps it from being read, until somebody repairs that.
	Stuck bool
}

// Lag returns the lag of every assigned partition, from the brokers' last answers.
func (s *Source) Lag() []PartitionLag {
	var lags []PartitionLag
	for _, a := range s.assignments() {
		lags = append(lags, a.lag())
	}
	return lags
}

// LastCommit returns the time of the last accepted commit; zero before the first.
func (s *Source) LastCommit() time.Time {
	if at := s.committed.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func (s *Source) assignments() []*Assignment {
	s.mu.Lock()
	sess := s.session
	s.mu.Unlock()
	if sess == nil {
		return nil
	}
	return sess.assignments()
}
