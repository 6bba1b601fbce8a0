package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/testkit/ledgermodel"
)

// log1 is a topic of one partition, 3, in memory.
type log1 struct {
	records []*kgo.Record
	start   int64
	end     int64 // 0: behind the last record
	kept    Retention
	failing error
	unnamed bool // answers do not name the partition
	unread  bool // nor does the answer of the scan
	reads   int
}

func (l *log1) Retention(context.Context, string) (Retention, error) { return l.kept, l.failing }

func (l *log1) Starts(context.Context, string) (map[int32]int64, error) {
	return map[int32]int64{3: l.start}, nil
}

func (l *log1) Ends(context.Context, string) (map[int32]int64, error) {
	if l.unnamed {
		return map[int32]int64{}, nil
	}
	if l.end > 0 || len(l.records) == 0 {
		return map[int32]int64{3: l.end}, nil
	}
	return map[int32]int64{3: l.records[len(l.records)-1].Offset + 1}, nil
}

func (l *log1) Scan(_ context.Context, _ string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	if l.unread {
		return map[int32]int64{}, nil
	}
	for _, r := range l.records {
		if r.Offset >= max(from[3], l.start) && r.Offset < to[3] {
			l.reads++
			if err := each(r); err != nil {
				return nil, err
			}
		}
	}
	return map[int32]int64{3: max(from[3], l.start)}, nil
}

// flood is a desk with an hourly limit for clients.
type flood struct {
	t      *testing.T
	topic  *log1
	book   *ledgermodel.Book
	intake *Intake
	duty   *Surplus
	log    *bytes.Buffer
	reg    *prometheus.Registry
	hour   time.Time
	keys   envelope.Keys
}

func newFlood(t *testing.T, most int, archive func(context.Context, *ledger.Surplus, func(func([]ledger.Letter) error) error) (string, int64, error)) *flood {
	t.Helper()
	f := &flood{t: t, topic: &log1{kept: Retention{Known: true, Time: 30 * 24 * time.Hour}}, log: &bytes.Buffer{}, reg: prometheus.NewRegistry(), hour: time.Unix(0, 0)}
	var err error
	if f.keys, err = envelope.ParseKeys(strings.Repeat("k", envelope.LeastKey)); err != nil {
		t.Fatal(err)
	}
	f.book = ledgermodel.New().Bounded(most, func() time.Time { return f.hour })
	metrics, log := NewMetrics(f.reg), zerolog.New(f.log)
	f.intake = NewIntake(IntakeConfig{MaxRecordBytes: 1 << 20, MaxAttempts: 3, Actor: ledger.Actor{Name: "desk"}, Observer: metrics, Keys: f.keys}, f.book, nil, log)
	f.duty = NewSurplus(SurplusConfig{Holder: "one", MaxEntered: most, Interval: time.Nanosecond, Archive: archive, Observer: metrics}, f.intake, f.book, f.topic, log)
	return f
}

// write adds records of a client, now, and lets the intake read them.
func (f *flood) write(client string, n int) {
	f.t.Helper()
	var batch []*kgo.Record
	for range n {
		at := int64(len(f.topic.records))
		e := envelope.Open(&kgo.Record{Topic: "decision-logs", Offset: at, Timestamp: time.Now()})
		r := e.Seal(envelope.Cause{Kind: envelope.Data, Code: "23514"}, envelope.Sealed{Topic: "dlq", Index: envelope.NoIndex, Value: fmt.Appendf(nil, "%d", at)})
		r.Topic, r.Partition, r.Offset, r.Timestamp = "dlq", 3, at, time.Now()
		if client != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.UploadedBy, Value: []byte(client)})
		}
		f.keys.Sign(r)
		f.topic.records, batch = append(f.topic.records, r), append(batch, r)
	}
	f.offer(batch)
}

// offer lets the intake read records.
func (f *flood) offer(records []*kgo.Record) {
	f.t.Helper()
	p := newPartition(f.t, nil, records)
	b, err := p.Fetch(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.intake.carry(f.t.Context(), uncommitted{p}, b); err != nil {
		f.t.Fatal(err)
	}
	for _, r := range records {
		if !f.book.Has(r.Topic, r.Partition, r.Offset) {
			f.t.Fatalf("%d is neither in the ledger nor in a range", r.Offset)
		}
	}
}

// uncommitted is a partition that ignores commits.
type uncommitted struct{ *partition }

func (uncommitted) Commit(context.Context, home.Settled) error { return nil }

func (f *flood) turn() {
	f.t.Helper()
	if err := f.duty.turn(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// want checks the number of letters in the ledger, and the ranges.
func (f *flood) want(entered int, ranges ...string) {
	f.t.Helper()
	p, err := f.book.Proof(f.t.Context(), time.Time{}, 0)
	if err != nil || len(p.Letters) != entered {
		f.t.Errorf("%d letters in the ledger, %v; want %d", len(p.Letters), err, entered)
	}
	all, err := f.book.Surplus(f.t.Context(), true, 0, 100)
	var got []string
	for i := len(all) - 1; i >= 0; i-- {
		s := &all[i]
		got = append(got, fmt.Sprintf("%q %d-%d from %d: %d, %d %d %d %s", s.Client, s.First, s.Last, s.Next, s.Letters, s.Entered, s.Archived, s.Lost, s.State))
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(ranges, "\n") {
		f.t.Errorf("ranges, %v:\n%s\nwant:\n%s", err, strings.Join(got, "\n"), strings.Join(ranges, "\n"))
	}
}

func (f *flood) metric(name, state string) float64 {
	f.t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (state == "" || m.GetLabel()[0].GetValue() == state) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	f.t.Fatalf("no metric %s %s", name, state)
	return 0
}

func TestSurplus_LaterHours(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 3, nil)
	f.write("flooder", 5)
	f.write("other", 2)
	f.write("flooder", 3)
	f.write("", 2)
	f.want(3+2+2, `"flooder" 3-9 from 3: 5, 0 0 0 open`)
	f.offer(f.topic.records) // a desk that was killed before it committed
	f.want(3+2+2, `"flooder" 3-9 from 3: 5, 0 0 0 open`)
	f.turn() // the client has no room in this hour
	f.want(3+2+2, `"flooder" 3-9 from 3: 5, 0 0 0 open`)
	if f.topic.reads != 0 {
		t.Errorf("%d records were read without room", f.topic.reads)
	}
	if n := f.metric("docket_desk_surplus_letters", "open"); n != 5 {
		t.Errorf("the metric says %v", n)
	}
	f.hour = f.hour.Add(time.Hour)
	f.turn()
	f.want(3+2+2+3, `"flooder" 3-9 from 8: 5, 3 0 0 open`)
	f.write("flooder", 1) // older letters used up the limit
	f.want(3+2+2+3, `"flooder" 3-9 from 8: 5, 3 0 0 open`, `"flooder" 12-12 from 12: 1, 0 0 0 open`)
	f.hour = f.hour.Add(time.Hour)
	f.turn()
	f.want(3+2+2+6, `"flooder" 3-9 from 10: 5, 5 0 0 entered`, `"flooder" 12-12 from 13: 1, 1 0 0 entered`)
	if n := f.metric("docket_desk_surplus_letters", "open"); n != 0 {
		t.Errorf("the metric says %v", n)
	}
	if n := f.metric("docket_desk_entered_total", "left"); n != 6 {
		t.Errorf("%v were left", n)
	}
	if n := strings.Count(f.log.String(), "dead letters left in Kafka"); n != 2 {
		t.Errorf("told %d times:\n%s", n, f.log)
	}
}

func TestSurplus_NoCapLater(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 4)
	f.want(1, `"flooder" 1-3 from 1: 3, 0 0 0 open`)
	f.book.Bounded(0, nil)
	f.duty.cfg.MaxEntered = 0
	f.turn()
	f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
}

func TestSurplus_Ordered(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 4)
	if err := f.book.OrderSurplus(t.Context(), 1, ledger.Actor{Name: "mara", Why: "now"}); err != nil {
		t.Fatal(err)
	}
	f.turn()
	f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
	if n := f.metric("docket_desk_surplus_forced_total", ""); n != 0 {
		t.Errorf("%v are said to be forced", n)
	}
}

// TestSurplus_NearTheEnd: letters that Kafka deletes soon enter in spite of the limit, and it is logged.
func TestSurplus_NearTheEnd(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]Retention{
		"soon":              {Known: true, Time: time.Nanosecond},
		"unknown":           {},
		"bounded by bytes":  {Known: true, Time: 30 * 24 * time.Hour, Bytes: 1 << 30},
		"for ever by bytes": {Known: true, Time: -1, Bytes: 1 << 30},
	} {
		f := newFlood(t, 1, nil)
		f.topic.kept = kept
		f.write("flooder", 4)
		f.turn()
		f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
		if n := f.metric("docket_desk_surplus_forced_total", ""); n != 3 || !strings.Contains(f.log.String(), "dead letters entered beyond the cap") {
			t.Errorf("%s: %v are said to be forced:\n%s", name, n, f.log)
		}
	}
}

func TestNearLoss(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old := func(first, left time.Duration) *ledger.Surplus {
		return &ledger.Surplus{FirstAt: now.Add(-first), LeftAt: now.Add(-left)}
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		r    *ledger.Surplus
		kept time.Duration
		want bool
	}{
		"a month, fresh":                   {old(0, 0), 30 * day, false},
		"a month, two days before":         {old(28*day, 28*day), 30 * day, false},
		"a month, a day before":            {old(29*day, 29*day), 30 * day, true},
		"two hours, half an hour before":   {old(90*time.Minute, 0), 2 * time.Hour, true},
		"two hours, an hour before":        {old(time.Hour, 0), 2 * time.Hour, false},
		"a producer's clock in the future": {old(-1000*day, 29*day), 30 * day, true},
		"for ever":                         {old(1000*day, 1000*day), -1, false},
	} {
		if got := nearLoss(c.r, Retention{Known: true, Time: c.kept}, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSurplus_Deleted: letters that Kafka deleted before they entered are counted, and the rest enters.
func TestSurplus_Deleted(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 5)
	f.topic.kept, f.topic.start = Retention{}, 3
	f.turn()
	f.want(3, `"flooder" 1-4 from 5: 4, 2 0 2 lost`)
	if n := f.metric("docket_desk_surplus_letters", "lost"); n != 2 || !strings.Contains(f.log.String(), `"letters":2,"hint":"see docs/runbook.md, DocketSurplusLost","message":"dead letters lost"`) {
		t.Errorf("%v are said to be lost:\n%s", n, f.log)
	}
	g := newFlood(t, 1, nil)
	g.write("flooder", 5)
	g.topic.start = 100
	g.turn()
	g.want(1, `"flooder" 1-4 from 5: 4, 0 0 4 lost`)
}

// TestSurplus_CutTopic: a topic that ends before the range may be a wrong answer. It is a loss only after the
// retention.
func TestSurplus_CutTopic(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 5)
	f.topic.end = 3
	if err := f.duty.turn(t.Context()); err == nil || !strings.Contains(err.Error(), "topic dlq ends at 3") {
		t.Fatal(err)
	}
	f.want(1, `"flooder" 1-4 from 1: 4, 0 0 0 open`)
	f.topic.kept = Retention{}
	f.turn()
	f.want(3, `"flooder" 1-4 from 5: 4, 2 0 2 lost`)
}

// TestSurplus_UnnamedPartition: if Kafka's answer lacks the partition, that is not a loss, even if records may be
// deleted at any moment.
func TestSurplus_UnnamedPartition(t *testing.T) {
	t.Parallel()
	for name, leaveOut := range map[string]func(*log1){
		"among the offsets": func(l *log1) { l.unnamed = true },
		"by the scan":       func(l *log1) { l.unread = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlood(t, 1, nil)
			f.write("flooder", 5)
			f.topic.kept = Retention{}
			leaveOut(f.topic)
			if err := f.duty.turn(t.Context()); err == nil || !strings.Contains(err.Error(), "did not name partition 3") {
				t.Fatal(err)
			}
			f.want(1, `"flooder" 1-4 from 1: 4, 0 0 0 open`)
			f.topic.unnamed, f.topic.unread = false, false
			f.turn()
			f.want(5, `"flooder" 1-4 from 5: 4, 4 0 0 entered`)
		})
	}
}

// TestSurplus_Archive: letters that Kafka deletes soon go to the archive, and into the ledger if that fails.
func TestSurplus_Archive(t *testing.T) {
	t.Parallel()
	var fail error
	var offsets []int64
	f := newFlood(t, 2, func(_ context.Context, s *ledger.Surplus, read func(func([]ledger.Letter) error) error) (string, int64, error) {
		offsets = nil
		err := read(func(letters []ledger.Letter) error {
			for i := range letters {
				offsets = append(offsets, letters[i].Found.Offset)
			}
			return fail
		})
		if len(offsets) == 0 {
			return "", 0, err
		}
		return "an archive of " + s.Client, int64(len(offsets)), err
	})
	f.write("flooder", 4)
	f.write("other", 1)
	f.write("flooder", 1)
	f.turn()
	if len(offsets) > 0 {
		t.Fatal("archived although it is in no hurry")
	}
	f.topic.kept.Time = time.Nanosecond
	f.turn()
	f.want(3, `"flooder" 2-5 from 6: 3, 0 3 0 archived`)
	if fmt.Sprint(offsets) != "[2 3 5]" {
		t.Errorf("archived %v", offsets)
	}
	f.offer(f.topic.records) // read once more: the archive has them
	f.want(3, `"flooder" 2-5 from 6: 3, 0 3 0 archived`)

	f.write("flooder", 1)
	f.topic.records[6].Headers = nil // another record is there now: the topic was made again
	f.turn()
	f.want(3, `"flooder" 2-5 from 6: 3, 0 3 0 archived`, `"flooder" 6-6 from 7: 1, 0 0 1 lost`)

	fail = errors.New("no bucket")
	f.write("flooder", 2)
	f.turn()
	f.want(5, `"flooder" 2-5 from 6: 3, 0 3 0 archived`, `"flooder" 6-6 from 7: 1, 0 0 1 lost`, `"flooder" 7-8 from 9: 2, 2 0 0 entered`)
	if !strings.Contains(f.log.String(), "dead letters not archived") || f.metric("docket_desk_surplus_forced_total", "") != 2 {
		t.Error(f.log)
	}
}

// TestSurplus_AnotherKey: after the key was replaced nothing is proven. The letters enter as foreign ones, and none
// is lost.
func TestSurplus_AnotherKey(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 3)
	f.intake.cfg.Keys, _ = envelope.ParseKeys(strings.Repeat("n", envelope.LeastKey))
	f.hour = f.hour.Add(time.Hour)
	f.duty.cfg.MaxEntered = 0
	f.book.Bounded(0, nil)
	f.turn()
	f.want(3, `"flooder" 1-2 from 3: 2, 2 0 0 entered`)
}

// TestSurplus_MuchOfOthers: a range moves on past records of others, so that they are not read again and again.
func TestSurplus_MuchOfOthers(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 2)
	f.write("other", 1)
	for range surplusOthers {
		r := *f.topic.records[2]
		r.Offset = int64(len(f.topic.records))
		f.topic.records = append(f.topic.records, &r)
	}
	f.write("flooder", 1)
	last := int64(len(f.topic.records) - 1)
	f.want(2, fmt.Sprintf(`"flooder" 1-%d from 1: 2, 0 0 0 open`, last))
	f.hour = f.hour.Add(time.Hour)
	f.turn()
	f.want(3, fmt.Sprintf(`"flooder" 1-%d from %d: 2, 1 0 0 open`, last, last))
}

// TestSurplus_RefusedForItsOwnSake: a letter that the ledger refuses enters with fewer details, and delays no other.
func TestSurplus_RefusedForItsOwnSake(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 4)
	f.duty.book = picky{f.book}
	f.hour = f.hour.Add(time.Hour)
	f.duty.cfg.MaxEntered = 0
	f.book.Bounded(0, nil)
	f.turn()
	f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
	if !strings.Contains(f.log.String(), "dead letter entered with fewer details") {
		t.Error(f.log)
	}
}

// picky refuses headers at one place.
type picky struct{ *ledgermodel.Book }

func (p picky) EnterSurplus(ctx context.Context, portion ledger.Portion, most int, by ledger.Actor) (n ledger.EnteredCount, done ledger.Passed, err error) {
	for _, l := range portion.Letters {
		if l.Found.Offset == 2 && l.Headers != nil {
			return n, done, sqlError("22021")
		}
	}
	return p.Book.EnterSurplus(ctx, portion, most, by)
}

// crowd has n ranges of clients without room, which are older than those of the book.
type crowd struct {
	*ledgermodel.Book
	n int
}

func (c crowd) Surplus(ctx context.Context, all bool, after int64, n int) (ranges []ledger.Surplus, err error) {
	for id := after + 1; id <= int64(c.n) && len(ranges) < n; id++ {
		ranges = append(ranges, ledger.Surplus{ID: id, Topic: "dlq", Partition: 3, Client: fmt.Sprint(id), Last: 0, State: ledger.SurplusOpen, Growth: 1, FirstAt: time.Now(), LeftAt: time.Now()})
	}
	rest, err := c.Book.Surplus(ctx, all, max(0, after-int64(c.n)), n-len(ranges))
	return append(ranges, rest...), err
}

// TestSurplus_TwoDesks: one desk works at a time. A portion that another desk entered is not an error.
func TestSurplus_TwoDesks(t *testing.T) {
	t.Parallel()
	f := newFlood(t, 1, nil)
	f.write("flooder", 4)
	f.hour = f.hour.Add(time.Hour)
	f.book.Bounded(0, nil)
	f.duty.cfg.MaxEntered = 0
	if mine, err := f.book.Duty(t.Context(), "surplus", "another", 0, time.Hour); err != nil || !mine {
		t.Fatal(mine, err)
	}
	f.turn()
	f.want(1, `"flooder" 1-3 from 1: 3, 0 0 0 open`)
	w := surplusWork{Surplus: f.duty, end: time.Now().Add(time.Hour), full: map[string]bool{}, holds: map[string]held{}}
	if err := w.ask(t.Context(), "dlq"); err != nil {
		t.Fatal(err)
	}
	open, err := f.book.Surplus(t.Context(), false, 0, 10)
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	again := open[0]
	for _, r := range []*ledger.Surplus{&open[0], &again} { // both listed it before either began
		if err := w.bring(t.Context(), r, false); err != nil {
			t.Fatal(err)
		}
	}
	f.want(4, `"flooder" 1-3 from 4: 3, 3 0 0 entered`)
}
