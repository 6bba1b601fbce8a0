package inspect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/service/config"
)

// Scope says which part of a live system to verify.
type Scope struct {
	// Since is the Kafka timestamp from which on source records are checked. It is not used if From is set.
	Since time.Time
	// From has the offsets of the source topics to begin at, for the partitions to check; nil: all of them.
	From verify.Offsets
	// Settled says that no record is moving: the source is stopped and all waits are over.
	Settled bool
	// Metrics are URLs of /metrics to ask.
	Metrics []string
	// MostForwarded limits the forwarded records that are kept in memory; 0: all are kept. Beyond it the error is a
	// [*TooManyError].
	MostForwarded int
	// TryDeadLetters inserts dead letters that the table refused again, each alone, and rolls them back.
	TryDeadLetters bool
}

// TooManyError says that more records were forwarded than a check may keep in memory.
type TooManyError struct{ Most int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("more than %d records were parked or dead-lettered in that time", e.Most)
}

// Result is the scope of a check and its result.
type Result struct {
	Summary   *verify.Summary
	At        time.Time
	Records   int64 // of the source topics
	Spans     map[verify.Partition]verify.Span
	Unread    int64    // records of these partitions above the committed offsets
	Lanes     []Lane   // the default lane first
	Elsewhere []string // places that could not be searched, in words
}

// Blind reports whether nothing was checked, although there are records: none of them is below the committed offsets.
func (r *Result) Blind() bool { return r.Records == 0 && r.Unread > 0 }

// Lane is the part of a [Result] that is about one lane.
type Lane struct {
	Name       string // "default", "urgent" or "bulk"
	Topic      string
	Records    int64
	Decisions  int
	Partitions int
	Unread     int64
}

// Limits of one part, except for a single Kafka record. Besides a part only forwarded records are kept in memory,
// without payload: about half a KiB for each record of the parking and dead-letter topics.
const (
	partDecisions = 2000
	partBytes     = 16 << 20
)

// Verify reads the source from the scope's start up to the committed offsets, part by part. It looks up every
// decision and runs the checker. An error means that it could not check.
func (s *System) Verify(ctx context.Context, scope Scope) (*Result, error) {
	since := scope.Since
	if scope.From != nil {
		since = time.Time{}
	}
	ctx = s.watched(ctx)
	ev, err := s.lookWithin(ctx, since, scope.MostForwarded)
	if err != nil {
		return nil, err
	}
	ev.Settled = scope.Settled
	if ev.Books, err = s.books(ctx, ev, since); err != nil {
		return nil, err
	}
	ev.Standby = s.standby()
	if ev.Metrics, err = metrics(ctx, scope.Metrics); err != nil {
		return nil, err
	}
	from, err := s.from(ctx, scope, ev)
	if err != nil {
		return nil, err
	}
	a := s.audit(ev, scope)
	for _, l := range s.settings.Lanes() {
		if err := a.lane(ctx, l, from[l.Topic]); err != nil {
			return nil, err
		}
	}
	a.result.At = ev.At
	a.invented()
	if err := a.beyondTheEnd(ctx); err != nil {
		return nil, err
	}
	a.whole()
	return a.result, nil
}

// from returns where to begin in each partition, by topic. It drops the other partitions from the evidence.
func (s *System) from(ctx context.Context, scope Scope, ev *verify.Evidence) (map[string]map[int32]int64, error) {
	from := make(map[string]map[int32]int64)
	for _, topic := range s.settings.SourceTopics() {
		from[topic] = make(map[int32]int64)
		if scope.From == nil {
			var err error
			if from[topic], err = s.kafka.Since(ctx, topic, scope.Since); err != nil {
				return nil, err
			}
		}
	}
	if scope.From == nil {
		return from, nil
	}
	for p, offset := range scope.From {
		end, there := ev.Ends[p]
		switch {
		case !there:
			return nil, &NoPartitionError{p.Topic, p.Number}
		case offset > end:
			return nil, &BeyondEndError{p.Topic, p.Number, offset, end}
		}
		from[p.Topic][p.Number] = offset
	}
	maps.DeleteFunc(ev.Ends, func(p verify.Partition, _ int64) bool { _, asked := scope.From[p]; return !asked })
	return from, nil
}

// NoPartitionError says that a place to verify from is in a partition that the topic does not have.
type NoPartitionError struct {
	Topic     string
	Partition int32
}

func (e *NoPartitionError) Error() string {
	return fmt.Sprintf("topic %s has no partition %d", e.Topic, e.Partition)
}

// BeyondEndError says that a place to verify from is beyond the end of its partition.
type BeyondEndError struct {
	Topic       string
	Partition   int32
	Offset, End int64
}

func (e *BeyondEndError) Error() string {
	return fmt.Sprintf("partition %d of topic %s ends at %d, before %d: nothing would be checked", e.Partition, e.Topic, e.End, e.Offset)
}

// audit is a running check.
type audit struct {
	sys    *System
	ev     *verify.Evidence
	scope  Scope
	places map[verify.Place][]int // forwarded records by their source record
	result *Result
	tried  int
	beyond []verify.Row // rows with an offset that was not written when the check began

	part  []verify.Decision
	bytes int
	spans map[verify.Partition]verify.Span
}

func (s *System) audit(ev *verify.Evidence, scope Scope) *audit {
	a := &audit{
		sys: s, ev: ev, scope: scope, places: make(map[verify.Place][]int, len(ev.Forwarded)), spans: make(map[verify.Partition]verify.Span),
		result: &Result{Summary: &verify.Summary{}, Spans: make(map[verify.Partition]verify.Span)},
	}
	for i := range ev.Forwarded {
		if f := &ev.Forwarded[i]; !f.NoOrigin {
			at := verify.Place{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset}
			a.places[at] = append(a.places[at], i)
		}
	}
	return a
}

// lane checks one lane, and adds it to the result.
func (a *audit) lane(ctx context.Context, l config.Lane, from map[int32]int64) error {
	r := a.result
	before := Lane{Records: r.Records, Decisions: r.Summary.Decisions, Partitions: len(r.Spans), Unread: r.Unread}
	if err := a.source(ctx, l.Topic, from); err != nil {
		return err
	}
	of := Lane{
		Name: l.Name(), Topic: l.Topic, Records: r.Records - before.Records, Decisions: r.Summary.Decisions - before.Decisions,
		Partitions: len(r.Spans) - before.Partitions, Unread: r.Unread - before.Unread,
	}
	if of.Records == 0 && of.Unread > 0 {
		a.missed(fmt.Sprintf("%s: nothing was checked: all %d records are above the committed offsets of group %s", l.Topic, of.Unread, l.Group))
	}
	r.Lanes = append(r.Lanes, of)
	return nil
}

// source reads a source topic up to the committed offsets and checks each part.
func (a *audit) source(ctx context.Context, topic string, from map[int32]int64) error {
	to := make(map[int32]int64)
	for p := range from {
		at := verify.Partition{Topic: topic, Number: p}
		if next, ok := a.ev.Committed[at]; ok && next > from[p] {
			to[p] = next
		}
		a.result.Unread += max(0, a.ev.Ends[at]-max(from[p], a.ev.Committed[at]))
	}
	next := time.Now().Add(patience)
	began, err := a.sys.kafka.Scan(ctx, topic, from, to, func(r *kgo.Record) error {
		a.add(r, from[r.Partition])
		if time.Now().After(next) {
			a.sys.say(fmt.Sprintf("%s: %d records", r.Topic, a.result.Records))
			next = time.Now().Add(patience)
		}
		if len(a.part) < partDecisions && a.bytes < partBytes {
			return nil
		}
		return a.decide(ctx)
	})
	if err != nil {
		return err
	}
	for p, end := range to {
		at := verify.Partition{Topic: topic, Number: p}
		if began[p] > from[p] {
			a.result.Elsewhere = append(a.result.Elsewhere, fmt.Sprintf("%v holds nothing below %d any more", at, began[p]))
		}
		begin := max(from[p], began[p])
		if done, ok := a.result.Spans[at]; ok {
			begin = done.To
		}
		if begin < end {
			a.span(at, begin, end)
		}
	}
	return a.decide(ctx)
}

// add adds a source record to the part. Offsets without a record belong to the part of the next one.
func (a *audit) add(r *kgo.Record, from int64) {
	at := verify.Partition{Topic: r.Topic, Number: r.Partition}
	begin := from
	if done, ok := a.result.Spans[at]; ok {
		begin = done.To
	}
	a.span(at, min(begin, r.Offset), r.Offset+1)
	a.result.Records++
	for _, d := range verify.DecisionsOf(r, int64(a.sys.settings.MaxRecordBytes)) {
		a.bytes += len(d.Body)
		a.part = append(a.part, d)
	}
}

// span extends the range of the part and of the whole check.
func (a *audit) span(p verify.Partition, from, to int64) {
	for _, spans := range []map[verify.Partition]verify.Span{a.spans, a.result.Spans} {
		if s, ok := spans[p]; ok {
			from = min(from, s.From)
		}
		spans[p] = verify.Span{From: from, To: to}
	}
}

// decide looks up the part's decisions, runs the checker and begins a new part.
func (a *audit) decide(ctx context.Context) error {
	truth := verify.NewTruth()
	truth.Spans = a.spans
	for i := 0; i < len(a.part); {
		n := i + 1
		for n < len(a.part) && a.part[n].Partition == a.part[i].Partition && a.part[n].Offset == a.part[i].Offset {
			n++
		}
		truth.Add(a.part[i:n]...)
		i = n
	}
	ev := *a.ev
	ev.Forwarded = a.forwarded()
	if err := a.sys.rows(ctx, truth, &ev, a.missed); err != nil {
		return err
	}
	a.ev.Standby = ev.Standby
	for _, row := range ev.Rows {
		if end, known := ev.Ends[partitionOf(row)]; known && row.Offset >= end {
			a.beyond = append(a.beyond, row)
		}
	}
	if a.scope.TryDeadLetters {
		if err := a.try(ctx, truth, &ev); err != nil {
			return err
		}
	}
	a.result.Summary.Merge(verify.DecidePart(&ev, truth))
	a.part, a.bytes, a.spans = nil, 0, make(map[verify.Partition]verify.Span)
	return nil
}

// missed notes a place that could not be searched, once.
func (a *audit) missed(place string) {
	if !slices.Contains(a.result.Elsewhere, place) {
		a.result.Elsewhere = append(a.result.Elsewhere, place)
	}
}

// forwarded returns the evidence about the part's records, in order.
func (a *audit) forwarded() []verify.Forwarded {
	var at []int
	for i := range a.part {
		place := a.part[i].Place
		place.Index = 0
		at = append(at, a.places[place]...)
		delete(a.places, place)
	}
	slices.Sort(at)
	list := make([]verify.Forwarded, len(at))
	for i, n := range at {
		list[i] = a.ev.Forwarded[n]
	}
	return list
}

// invented checks forwarded records whose source places were read and have no record.
func (a *audit) invented() {
	truth := verify.NewTruth()
	truth.Spans = a.result.Spans
	ev := *a.ev
	ev.Forwarded = nil
	for place, at := range a.places {
		if truth.Covers(place) {
			for _, n := range at {
				ev.Forwarded = append(ev.Forwarded, a.ev.Forwarded[n])
			}
		}
	}
	a.result.Summary.Merge(verify.DecidePart(&ev, truth))
}

// rows looks up the rows of all identities of a truth, and those with another payload. Decisions of archived days are looked for in
// the archives. missed gets the places that could not be searched.
func (s *System) rows(ctx context.Context, truth *verify.Truth, ev *verify.Evidence, missed func(string)) error {
	const chunk = 1000
	type key struct {
		id string
		at time.Time
	}
	seen := make(map[key]bool)
	sought := make([]*verify.Decision, 0, chunk)
	var has map[*verify.Decision]bool
	add := func(d *verify.Decision, row verify.Row, equal bool) {
		if has[d] = true; !equal {
			ev.Unequal = append(ev.Unequal, d.Place)
		}
		if k := (key{row.ID, row.Time}); !seen[k] {
			seen[k] = true
			ev.Rows = append(ev.Rows, row)
		}
	}
	flush := func() error {
		has = make(map[*verify.Decision]bool, len(sought))
		err := s.lookUp(ctx, sought, add)
		if err == nil {
			lacks := slices.DeleteFunc(slices.Clone(sought), func(d *verify.Decision) bool { return has[d] || d.Code != "" })
			err = s.archivedRows(ctx, lacks, ev, add, missed)
		}
		ev.Standby = ev.Standby || s.standby()
		sought = sought[:0]
		return err
	}
	for _, d := range truth.Decisions() {
		if d.ID == "" {
			continue
		}
		sought = append(sought, d)
		if len(sought) == chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// beyondTheEnd checks again rows with an offset beyond the log end, because a duplicate may have come meanwhile.
func (a *audit) beyondTheEnd(ctx context.Context) error {
	if len(a.beyond) == 0 {
		return nil
	}
	ends, err := a.sys.ends(ctx)
	if err != nil {
		return err
	}
	for _, row := range a.beyond {
		if row.Offset >= ends[partitionOf(row)] {
			a.ev.Rows = append(a.ev.Rows, row)
		}
	}
	return nil
}

// partitionOf returns the partition that a row was read from.
func partitionOf(row verify.Row) verify.Partition {
	return verify.Partition{Topic: row.Topic, Number: row.Partition}
}

// whole adds the checks of the system as a whole.
func (a *audit) whole() {
	if a.ev.Standby {
		a.missed(behind)
	}
	r := verify.Decide(a.ev, nil, nil)
	r.Merge(a.result.Summary)
	a.result.Summary = r
	for _, dir := range a.sys.spools {
		if !saw(a.ev, dir) {
			a.result.Elsewhere = append(a.result.Elsewhere, "spool "+dir+" is not there; records in the spools of other hosts are not seen from here")
		}
	}
}

const metricsTimeout = 5 * time.Second

// metrics reads each URL.
func metrics(ctx context.Context, urls []string) (map[string]verify.Metrics, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	all := make(map[string]verify.Metrics)
	client := &http.Client{Timeout: metricsTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, url := range urls {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("ask for metrics: %w", err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("ask for metrics: %w", err)
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
		_ = resp.Body.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("ask for metrics: %w", err)
		}
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("ask %s for metrics: the answer is %d", url, resp.StatusCode)
		}
		all[url] = verify.ParseMetrics(string(body))
	}
	return all, nil
}
