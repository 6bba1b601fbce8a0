package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// trialBytes is the approximate limit of decisions in memory, in bytes.
const trialBytes = 8 << 20

// unreadable is the reason for a value on which the decoder panicked.
const unreadable decision.Reason = errclass.CodePanic

// attempt is one run of a trial.
type attempt struct {
	*Trial
	result TrialResult
	faults map[TrialFault]int64 // by a fault without its number
	hand   []tried
	bytes  int                        // in hand
	asked  int                        // decisions in hand
	stored map[identity]*decision.Log // decisions in hand that would be stored
}

// tried is a letter in hand.
type tried struct {
	parts  []decision.Part
	origin envelope.Origin
	reason decision.Reason // the whole record is refused
}

// identity is the key of a row.
type identity struct {
	id string
	at int64 // microseconds
}

func identityOf(l *decision.Log) identity { return identity{l.ID, l.Time.UnixMicro()} }

// errUnwell ends a trial on a table that is not well.
type errUnwell struct{ err error }

func (e *errUnwell) Error() string {
	return "the table does not take a known-good row: " + e.err.Error()
}
func (e *errUnwell) Unwrap() error { return e.err }

// begin probes the table and calls each. A nil each has nothing to try.
func (t *Trial) begin(ctx context.Context, each func(*attempt) error) (TrialResult, error) {
	a := &attempt{Trial: t, faults: map[TrialFault]int64{}}
	err := a.probe(ctx)
	if err == nil && each != nil {
		err = each(a)
	}
	if unwell, ok := errors.AsType[*errUnwell](err); ok {
		return TrialResult{Unwell: &TrialUnwell{Code: errclass.Classify(unwell.err).Code, Hint: t.cfg.Hint(unwell.err)}}, nil
	}
	if err != nil {
		return TrialResult{}, err
	}
	for f, n := range a.faults {
		f.Letters = n
		a.result.StillFail = append(a.result.StillFail, f)
	}
	slices.SortFunc(a.result.StillFail, compareFaults)
	return a.result, nil
}

// probe returns an [*errUnwell] if the table answers and does not take a known-good row.
func (a *attempt) probe(ctx context.Context) error {
	err := a.table.Probe(ctx, time.Now())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || ofTheMoment(err):
		return fmt.Errorf("probe the table for the trial: %w", err)
	}
	return &errUnwell{err}
}

// ofTheMoment reports whether an error blames neither the table nor a row, so that the next try can succeed.
func ofTheMoment(err error) bool {
	v := errclass.Classify(err)
	return (v.OfTheMoment() || v.Class == errclass.Unknown || v.Class == errclass.Cancelled) && v.Rule != errclass.Await
}

// letters tries some letters.
func (a *attempt) letters(ctx context.Context, entries []ledger.Entry) error {
	for i := range entries {
		a.take(&entries[i])
		if a.bytes >= trialBytes || a.asked >= a.cfg.Portion {
			if err := a.settle(ctx); err != nil {
				return err
			}
		}
	}
	return a.settle(ctx)
}

// take reads a letter's value.
func (a *attempt) take(e *ledger.Entry) {
	record, refused := read(e.Value, a.cfg.MaxRecordBytes)
	l := tried{parts: record.Parts, origin: e.Origin}
	if refused != nil {
		l.reason = refused.Reason
	}
	a.hand = append(a.hand, l)
	a.asked += len(l.parts)
	a.bytes += len(e.Value) + record.Inflated
}

// read decodes a value. A panic of the decoder becomes a refusal.
func read(value []byte, most int64) (r decision.Record, refused *decision.Refusal) {
	defer func() {
		if recover() != nil {
			r, refused = decision.Record{}, &decision.Refusal{Reason: unreadable}
		}
	}()
	return decision.Decode(value, most)
}

// settle asks the table about the letters in hand and counts the results.
func (a *attempt) settle(ctx context.Context) error {
	var logs []*decision.Log
	var rows []pipeline.Row
	for i := range a.hand {
		l := &a.hand[i]
		for j := range l.parts {
			if l.parts[j].Err != nil {
				continue
			}
			o := &l.origin
			index := l.parts[j].Index
			if len(l.parts) == 1 && o.Index >= 0 {
				index = o.Index
			}
			logs = append(logs, &l.parts[j].Log)
			rows = append(rows, pipeline.Row{Log: &l.parts[j].Log, Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Index: index})
		}
	}
	predictions, err := a.predictions(ctx, logs, rows)
	if err != nil {
		return err
	}
	a.stored = make(map[identity]*decision.Log, len(logs))
	for i := range a.hand {
		predictions = a.count(&a.hand[i], predictions)
	}
	clear(a.hand)
	a.hand, a.bytes, a.asked = a.hand[:0], 0, 0
	return nil
}

// prediction is the result for one decision.
type prediction struct {
	outcome pipeline.Outcome // 0 if it is refused
	refused error
}

// predictions asks about each decision alone. A decision with a row is not tried, because a retry ends there.
func (a *attempt) predictions(ctx context.Context, logs []*decision.Log, rows []pipeline.Row) ([]prediction, error) {
	predictions := make([]prediction, len(rows))
	if len(rows) == 0 {
		return predictions, nil
	}
	standing, err := a.table.Compare(ctx, logs)
	if err != nil {
		return nil, fmt.Errorf("look up rows for the trial: %w", err)
	}
	var at []int
	var open []pipeline.Row
	for i := range rows {
		if predictions[i].outcome = standing[i]; standing[i] == 0 {
			at, open = append(at, i), append(open, rows[i])
		}
	}
	refused, err := a.refusals(ctx, open)
	if err != nil {
		return nil, err
	}
	for i, why := range refused {
		if predictions[at[i]].refused = why; why == nil {
			predictions[at[i]].outcome = pipeline.Stored
		}
	}
	return predictions, nil
}

// refusals asks about rows. A fault that is neither a row's nor transient ends the request, such as a trigger that is
// broken for some rows. Then it asks about halves. A row that fails alone counts as failed if a known-good row is
// taken.
func (a *attempt) refusals(ctx context.Context, rows []pipeline.Row) ([]error, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	refused, err := a.table.Refusals(ctx, rows, time.Now())
	if err == nil {
		return refused, nil
	}
	if unwell, ok := errors.AsType[*pipeline.Unwell](err); ok && ctx.Err() == nil && !ofTheMoment(unwell.Err) {
		return nil, &errUnwell{unwell.Err}
	}
	if ctx.Err() != nil || ofTheMoment(err) {
		return nil, fmt.Errorf("try decisions: %w", err)
	}
	if len(rows) == 1 {
		return []error{err}, a.probe(ctx)
	}
	half := len(rows) / 2
	first, err := a.refusals(ctx, rows[:half])
	if err != nil {
		return nil, err
	}
	second, err := a.refusals(ctx, rows[half:])
	return append(first, second...), err
}

// count counts a letter by its worst decision. Its decisions have the first of these predictions; count returns the rest.
func (a *attempt) count(l *tried, predictions []prediction) []prediction {
	a.result.Total++
	if l.reason != "" {
		a.undecodable(l.reason)
		return predictions
	}
	var refused error
	var reason decision.Reason
	var conflict, would bool
	for i := range l.parts {
		p := &l.parts[i]
		if p.Err != nil {
			if reason == "" {
				reason = p.Err.Reason
			}
			continue
		}
		f := a.amongOthers(&p.Log, predictions[0])
		predictions = predictions[1:]
		if refused == nil {
			refused = f.refused
		}
		conflict = conflict || f.outcome == pipeline.Conflicting
		would = would || f.outcome == pipeline.Stored
	}
	switch {
	case refused != nil:
		a.faults[trialFaultOf(refused)]++
	case reason != "":
		a.undecodable(reason)
	case conflict:
		a.result.Conflict++
	case would:
		a.result.Would++
	default:
		a.result.There++
	}
	return predictions
}

// amongOthers returns the prediction of a decision after those before it in hand: of one identity the first gets the row.
func (a *attempt) amongOthers(l *decision.Log, f prediction) prediction {
	if f.outcome != pipeline.Stored {
		return f
	}
	first, ok := a.stored[identityOf(l)]
	switch {
	case !ok:
		a.stored[identityOf(l)] = l
	case samePayload(first, l):
		f.outcome = pipeline.Present
	default:
		f.outcome = pipeline.Conflicting
	}
	return f
}

// samePayload compares two decisions as the server does.
func samePayload(a, b *decision.Log) bool {
	if a.Unfaithful != nil || b.Unfaithful != nil {
		return bytes.Equal(a.Came(), b.Came())
	}
	return sameJSON(a.Raw, b.Raw)
}

// sameJSON compares payloads as the server does. But numbers that are written differently count as different.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var values [2]any
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func (a *attempt) undecodable(reason decision.Reason) {
	if a.result.Undecodable == nil {
		a.result.Undecodable = map[decision.Reason]int64{}
	}
	a.result.Undecodable[reason]++
}
