package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/record/decision"
)

// SurplusConfig says how dead letters that were left in Kafka are entered later.
type SurplusConfig struct {
	Holder     string        // of the duty: this desk
	MaxEntered int           // limit for a client in an hour; 0: none
	Interval   time.Duration // between two turns; 0: 10 s
	Lease      time.Duration // how long a dead desk keeps the duty; 0: 2 min. A turn takes half of it
	// Archive writes the rest of a range to one archive and proves it, from offset Next up to Last. read returns the
	// letters in portions. Archive returns the name of the archive and the number of its letters; the name is empty
	// if there are none. It is nil if the desk has no archive.
	Archive  func(ctx context.Context, s *ledger.Surplus, read func(each func([]ledger.Letter) error) error) (archive string, letters int64, err error)
	Observer Observer // nil: nobody
}

// SurplusBook is the part of the ledger that Surplus needs. [ledger.Book] is one.
type SurplusBook interface {
	ledger.Growth
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
	DutyDone(ctx context.Context, name, holder string) error
}

// SurplusTopics are the dead-letter topics, read outside of any group.
type SurplusTopics interface {
	Retention(ctx context.Context, topic string) (Retention, error)
	Starts(ctx context.Context, topic string) (map[int32]int64, error)
	Ends(ctx context.Context, topic string) (map[int32]int64, error)
	Scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error)
}

// Surplus enters dead letters that were left in Kafka: when their clients are below the limit again, or before Kafka
// deletes them.
type Surplus struct {
	cfg    SurplusConfig
	intake *Intake
	book   SurplusBook
	topics SurplusTopics
	log    zerolog.Logger
	told   map[int64]bool // ranges that were logged
	after  int64          // the next turn lists ranges behind this one
	trimAt time.Time
	restTo time.Time // after a failure, another desk has a turn first
	failed error     // of the last turn that this desk had
}

// NewSurplus makes a Surplus. It reads letters as intake does.
func NewSurplus(cfg SurplusConfig, intake *Intake, book SurplusBook, topics SurplusTopics, log zerolog.Logger) *Surplus {
	if cfg.Interval <= 0 {
		cfg.Interval = 10 * time.Second
	}
	if cfg.Lease <= 0 {
		cfg.Lease = 2 * time.Minute
	}
	cfg.Observer = observed(cfg.Observer)
	return &Surplus{cfg: cfg, intake: intake, book: book, topics: topics, log: log, told: map[int64]bool{}}
}

const (
	// One transaction has at most surplusRecords letters of surplusBytes. The range moves on after surplusOthers
	// records of other clients.
	surplusRecords = 500
	surplusBytes   = 8 << 20
	surplusOthers  = 20_000
	// mostRanges limits the open ranges of a turn. If there are more, the next turn has the ranges behind them.
	mostRanges = 20_000
	trimEvery  = time.Hour
)

// Run works on the ranges until ctx ends, and returns nil then.
func (s *Surplus) Run(ctx context.Context) error {
	t := trouble{log: s.log, work: "entering dead letters that were left in Kafka"}
	return t.repeat(ctx, s.cfg.Interval, func(ctx context.Context) (more bool, err error) {
		if err := s.turn(ctx); ctx.Err() == nil {
			return false, err
		}
		return false, ctx.Err() // the desk stops: neither a success nor an error of that counts
	})
}

func (s *Surplus) turn(ctx context.Context) error {
	var trimErr error
	if now := time.Now(); now.After(s.trimAt) {
		if trimErr = s.book.TrimSurplus(ctx); trimErr == nil {
			s.trimAt = now.Add(trimEvery)
		}
	}
	err := s.follow(ctx)
	sums, sumErr := s.book.SurplusSums(ctx)
	if sumErr == nil {
		s.cfg.Observer.Surplus(sums)
	}
	return errors.Join(trimErr, err, sumErr)
}

// follow goes through the open ranges if it is this desk's turn: first those that Kafka deletes soon, then the
// oldest. A failure in one range or topic does not stop the others. The duty is given back also then, as another desk may
// be able to read what this one cannot.
func (s *Surplus) follow(ctx context.Context) error {
	ranges, err := s.book.Surplus(ctx, false, s.after, mostRanges)
	if err != nil {
		s.after = 0
		return err
	}
	if len(ranges) == 0 {
		if s.after == 0 { // none is open
			s.failed = nil
		}
		s.after = 0
		return s.failed
	}
	if time.Now().Before(s.restTo) {
		return s.failed // a desk that rests has not succeeded
	}
	// A tenth less: ticks are not exact.
	mine, err := s.book.Duty(ctx, "surplus", s.cfg.Holder, s.cfg.Interval*9/10, s.cfg.Lease)
	if err != nil {
		return err
	}
	if !mine {
		return s.failed
	}
	if s.after = 0; len(ranges) == mostRanges {
		s.after = ranges[mostRanges-1].ID
	}
	s.tell(ranges)
	now := time.Now()
	w := surplusWork{Surplus: s, end: now.Add(s.cfg.Lease / 2), full: map[string]bool{}, holds: map[string]held{}}
	due := make([]dueRange, 0, len(ranges))
	for i := range ranges {
		r := &ranges[i]
		if e := w.ask(ctx, r.Topic); e != nil {
			err = errors.Join(err, e)
		}
		if h := w.holds[r.Topic]; h.answered {
			due = append(due, dueRange{r, nearLoss(r, h.kept, now)})
		}
	}
	slices.SortStableFunc(due, func(a, b dueRange) int { return cmp.Compare(order(a), order(b)) })
	for _, d := range due {
		if e := w.bring(ctx, d.Surplus, d.near); e != nil {
			err = errors.Join(err, e)
		}
		if ctx.Err() != nil || time.Now().After(w.end) {
			break
		}
	}
	if s.failed = err; err != nil {
		s.restTo = time.Now().Add(s.cfg.Interval * 3 / 2)
	}
	done := s.book.DutyDone(ctx, "surplus", s.cfg.Holder)
	if errors.Is(done, ledger.ErrLost) { // it took longer than the lease, and is still done
		done = nil
	}
	return errors.Join(err, done)
}

// dueRange is a range, and whether Kafka deletes it soon.
type dueRange struct {
	*ledger.Surplus
	near bool
}

// order returns 0 for a range that Kafka deletes soon.
func order(d dueRange) int {
	switch {
	case d.near:
		return 0
	case d.OrderedBy != "":
		return 1
	}
	return 2
}

// tell logs each range once.
func (s *Surplus) tell(ranges []ledger.Surplus) {
	for i := range ranges {
		r := &ranges[i]
		if s.told[r.ID] {
			continue
		}
		s.told[r.ID] = true
		s.named(s.log.Warn(), r).Int64("letters", r.Open()).
			Str("hint", "docket dlq surplus lists them; they enter later, at most DOCKET_DESK_MAX_ENTERED an hour").Msg("dead letters left in Kafka")
	}
	if len(s.told) > 10*mostRanges {
		clear(s.told)
	}
}

func (s *Surplus) named(e *zerolog.Event, r *ledger.Surplus) *zerolog.Event {
	return e.Int64("range", r.ID).Str("topic", r.Topic).Int32("partition", r.Partition).Int64("first_offset", r.First).Int64("last_offset", r.Last).Str("client", r.Client)
}

// nearLoss reports whether retention comes close to a range: within a day, or a quarter of the retention if that is
// less. If the retention is unknown, it is always close.
func nearLoss(r *ledger.Surplus, kept Retention, now time.Time) bool {
	switch {
	case !kept.Known || kept.Bytes > 0:
		return true
	case kept.Time < 0:
		return false
	}
	since := r.FirstAt
	if r.LeftAt.Before(since) { // a producer's clock may be wrong
		since = r.LeftAt
	}
	return !now.Before(since.Add(kept.Time - min(24*time.Hour, kept.Time/4)))
}

// surplusWork is one turn of the duty.
type surplusWork struct {
	*Surplus
	end  time.Time
	full map[string]bool // clients at their limit
	// holds has Kafka's offsets of a topic. It was asked after the ranges were listed, so a range ends before the
	// topic does.
	holds map[string]held
}

// held has the offsets that Kafka holds of a topic, and its retention.
type held struct {
	kept         Retention
	starts, ends map[int32]int64
	answered     bool // if not, nothing is known of the topic
}

// ask asks Kafka for a topic once, and returns its error then.
func (w *surplusWork) ask(ctx context.Context, topic string) (err error) {
	if _, asked := w.holds[topic]; asked {
		return nil
	}
	var h held
	defer func() { w.holds[topic] = h }()
	if h.kept, err = w.topics.Retention(ctx, topic); err != nil {
		return fmt.Errorf("retention of topic %s: %w", topic, err)
	}
	if h.starts, err = w.topics.Starts(ctx, topic); err != nil {
		return err
	}
	if h.ends, err = w.topics.Ends(ctx, topic); err != nil {
		return err
	}
	h.answered = true
	return nil
}

// Reasons to stop reading a range.
var (
	errNoRoom  = errors.New("the client has no room")
	errTimeOut = errors.New("the turn is over")
)

// bring enters or archives a part of a range.
func (w *surplusWork) bring(ctx context.Context, r *ledger.Surplus, near bool) error {
	end, err := w.bounds(ctx, r, near)
	if err != nil || r.Next > r.Last {
		return ignoreLost(err)
	}
	anyway := near || r.OrderedBy != ""
	if !anyway && (w.full[r.Client] || w.cfg.MaxEntered > 0 && r.Growth >= int64(w.cfg.MaxEntered)) {
		return nil
	}
	if near && w.cfg.Archive != nil && r.OrderedBy == "" && end > r.Last {
		if done, err := w.archive(ctx, r); done || ctx.Err() != nil || errors.Is(err, ledger.ErrLost) {
			return ignoreLost(err)
		}
	}
	late := &lateRange{w: w, r: r, anyway: anyway, forced: near && r.OrderedBy == ""}
	err = late.enter(ctx, end)
	switch {
	case late.entered > 0 && late.forced:
		w.cfg.Observer.Forced(late.entered)
		w.named(w.log.Error(), r).Int("letters", late.entered).
			Str("hint", "set DOCKET_ARCHIVE_TO for the desk, or a longer retention.ms: Kafka was about to delete them").Msg("dead letters entered beyond the cap")
	case late.entered > 0:
		w.named(w.log.Info(), r).Int("letters", late.entered).Msg("dead letters entered late")
	}
	if errors.Is(err, errNoRoom) {
		w.full[r.Client] = true
		return nil
	}
	if errors.Is(err, errTimeOut) {
		return nil
	}
	return ignoreLost(err)
}

// ignoreLost returns nil if another desk was faster.
func ignoreLost(err error) error {
	if errors.Is(err, ledger.ErrLost) {
		return nil
	}
	return err
}

// bounds moves a range behind the records that Kafka has deleted, and returns the end of the topic. If the topic ends
// before the range, it was created again or cut. That counts as a loss only once retention would have deleted the
// records.
func (w *surplusWork) bounds(ctx context.Context, r *ledger.Surplus, near bool) (end int64, err error) {
	holds := w.holds[r.Topic]
	if start := min(holds.starts[r.Partition], r.Last+1); start > r.Next {
		w.named(w.log.Error(), r).Int64("deleted_before", start).
			Str("hint", "retention deleted them before they were entered or archived; docket dlq surplus counts them").Msg("dead letters deleted by Kafka")
		if err := w.pass(ctx, r, ledger.Portion{ID: r.ID, From: r.Next, To: start}, nil); err != nil {
			return 0, err
		}
	}
	end, there := holds.ends[r.Partition]
	if !there {
		return 0, unnamed(r)
	}
	if end <= r.Last && !near {
		return 0, fmt.Errorf("topic %s ends at %d in partition %d, before dead letters that were left there up to %d", r.Topic, end, r.Partition, r.Last)
	}
	return min(end, r.Last+1), nil
}

// unnamed is the error if Kafka's answer has no such partition. That says nothing about its records.
func unnamed(r *ledger.Surplus) error {
	return fmt.Errorf("read topic %s: Kafka did not name partition %d", r.Topic, r.Partition)
}

// pass enters a portion and moves the range on.
func (w *surplusWork) pass(ctx context.Context, r *ledger.Surplus, p ledger.Portion, added *int) error {
	count, done, err := w.intake.late(ctx, w.book, p)
	if err != nil {
		return err
	}
	r.Next = done.Next
	if added != nil {
		*added += count.New + count.DeadAgain
	}
	w.lost(r, done.Lost)
	if done.Next < p.To {
		return errNoRoom
	}
	return nil
}

// lost logs a loss.
func (w *surplusWork) lost(r *ledger.Surplus, letters int64) {
	if letters > 0 {
		w.named(w.log.Error(), r).Int64("letters", letters).Str("hint", "see docs/runbook.md, DocketSurplusLost").Msg("dead letters lost")
	}
}

// portions reads a range from Next up to an offset. It passes the letters of its client to each in portions, each
// with the offset up to which all were read. A portion may be empty.
func (w *surplusWork) portions(ctx context.Context, r *ledger.Surplus, end int64, each func(letters []ledger.Letter, to int64) error) error {
	var letters []ledger.Letter
	var d decision.Decoder
	bytes, others := 0, 0
	hand := func(to int64) error {
		err := each(letters, to)
		letters, bytes, others = nil, 0, 0
		return err
	}
	from := r.Next
	began, err := w.topics.Scan(ctx, r.Topic, map[int32]int64{r.Partition: from}, map[int32]int64{r.Partition: end}, func(rec *kgo.Record) error {
		l := w.intake.read(&d, rec)
		if !l.ClaimedBy(r.Client) {
			if others++; others < surplusOthers {
				return nil
			}
			return hand(rec.Offset + 1)
		}
		letters, bytes = append(letters, l), bytes+len(rec.Value)+len(rec.Key)
		if len(letters) < surplusRecords && bytes < surplusBytes {
			return nil
		}
		return hand(rec.Offset + 1)
	})
	if err != nil {
		return err
	}
	if _, read := began[r.Partition]; !read {
		return unnamed(r)
	}
	return hand(r.Last + 1)
}

// archive writes the rest of a range to an archive and closes it, if there is a rest.
func (w *surplusWork) archive(ctx context.Context, r *ledger.Surplus) (done bool, err error) {
	name, letters, err := w.cfg.Archive(ctx, r, func(each func([]ledger.Letter) error) error {
		return w.portions(ctx, r, r.Last+1, func(letters []ledger.Letter, _ int64) error { return each(letters) })
	})
	var lost int64
	if err == nil && name == "" {
		return false, nil
	}
	if err == nil {
		lost, err = w.book.ArchivedSurplus(ctx, r.ID, r.Next, r.Last, name, letters)
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, ledger.ErrLost) {
			w.named(w.log.Error(), r).Err(err).Str("hint", "they enter the ledger now: Kafka is about to delete them").Msg("dead letters not archived")
		}
		return false, err
	}
	w.named(w.log.Warn(), r).Int64("letters", letters).Str("archive", name).Str("hint", "docket restore --dead-letters brings them into the ledger").Msg("dead letters archived from Kafka")
	w.lost(r, lost)
	return true, nil
}

// lateRange enters a range.
type lateRange struct {
	w       *surplusWork
	r       *ledger.Surplus
	anyway  bool
	forced  bool
	entered int
}

func (l *lateRange) enter(ctx context.Context, end int64) error {
	return l.w.portions(ctx, l.r, end, func(letters []ledger.Letter, to int64) error {
		if time.Now().After(l.w.end) {
			return errTimeOut
		}
		return l.put(ctx, letters, to)
	})
}

// put enters letters together, or one by one if the ledger refuses one of them.
func (l *lateRange) put(ctx context.Context, letters []ledger.Letter, to int64) error {
	portion := func(letters []ledger.Letter, to int64) error {
		return l.w.pass(ctx, l.r, ledger.Portion{ID: l.r.ID, From: l.r.Next, To: to, Letters: letters, Anyway: l.anyway}, &l.entered)
	}
	err := portion(letters, to)
	if err == nil || errclass.Classify(err).Class != errclass.Data {
		return err
	}
	for i := range letters {
		at := letters[i].Found.Offset + 1
		if i == len(letters)-1 {
			at = to
		}
		if err = l.w.intake.reduced(letters[i], func(one ledger.Letter) error { return portion([]ledger.Letter{one}, at) }); err != nil {
			return err
		}
	}
	return nil
}
