//go:build integration

package sqlstates

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

const (
	batch = 8 // records, one of them odd
	oddAt = 5
	many  = 10 // records, in batches of two
)

// one carries a batch in which the record at oddAt has the additional members, and returns where it went.
func (w *world) one(want expectation, odd string) (seen string) {
	w.t.Helper()
	values := make([]string, batch)
	for i := range values {
		values[i] = logOf(fmt.Sprintf("%s%d", w.prefix, i), noon, "")
	}
	values[oddAt] = odd
	w.send(values...)
	c := w.start(batch)
	if !c.housed(batch, home.All()...) {
		return "no home"
	}
	homes, retries := c.count()
	c.stop()
	w.retried(want, retries)
	if at := w.committed(); at != batch {
		w.t.Errorf("committed %d, want %d", at, batch)
	}
	seen = w.checkFirst(want, homes)
	if homes[home.Parked] > 0 {
		w.checkReplay(want, homes[home.Parked])
		if want.end != want.odd {
			seen += ", then " + string(want.end)
		}
	}
	w.checkEnd(want)
	return seen
}

func (w *world) retried(want expectation, n int) {
	w.t.Helper()
	if want.retries == ">0" && n > 0 || strconv.Itoa(n) == want.retries {
		return
	}
	w.t.Errorf("%d retries, want %s", n, want.retries)
}

// checkFirst compares the homes after the consumer.
func (w *world) checkFirst(want expectation, homes map[home.Home]int) (seen string) {
	w.t.Helper()
	counts := map[home.Home]int{}
	for h, at := range map[home.Home]place{home.Row: row, home.DeadLetter: deadLetter, home.Parked: parked} {
		if want.odd == at {
			counts[h]++
		}
		if want.neighbours == at {
			counts[h] += batch - 1
		}
	}
	if want.neighbours == rowOrParked { // every accepted half has its rows, so at least four have
		counts = maps.Clone(homes)
		if homes[home.Row] < batch/2 || homes[home.Row]+homes[home.Parked] != batch {
			w.t.Errorf("homes %v, want rows for the halves that passed, and the rest parked", homes)
		}
	}
	if !maps.Equal(homes, counts) {
		w.t.Errorf("homes after the consumer: %v, want %v", homes, counts)
	}
	dead := w.forwarded("dlq")
	if want.odd == deadLetter {
		w.only(dead, "data", want.code)
		return string(deadLetter)
	}
	if len(dead) > 0 {
		w.t.Errorf("%d dead letters", len(dead))
	}
	for _, r := range w.forwarded("parking") {
		w.headers(r, map[string]string{envelope.FailureKind: "transient", envelope.FailureCode: want.code, envelope.RetryAttempt: "0"})
	}
	if homes[home.Parked] == 1 {
		return string(parked)
	}
	return fmt.Sprintf("%s (%d of %d)", parked, homes[home.Parked], batch)
}

// checkReplay lets the replayer finish the parked records.
func (w *world) checkReplay(want expectation, n int) {
	w.t.Helper()
	r := w.replay()
	r.housed(n, home.Row, home.Duplicate, home.DeadLetter, home.Exhausted)
	homes, _ := r.count()
	r.stop()
	again := 0
	if want.end == exhausted {
		again = maxAttempts - 1 // it is parked again after every try except the last
	}
	if homes[home.Parked] != again {
		w.t.Errorf("parked again %d times, want %d", homes[home.Parked], again)
	}
}

// checkEnd compares the homes at the end.
func (w *world) checkEnd(want expectation) {
	w.t.Helper()
	var ids []string
	for i := range batch {
		if i != oddAt {
			ids = append(ids, fmt.Sprintf("%s%d", w.prefix, i))
		}
	}
	if got := w.rows(); !slices.Equal(got, ids) {
		w.t.Errorf("rows of %v, want of the neighbours, %v", got, ids)
	}
	switch dead, gone := w.forwarded("dlq"), w.forwarded("parking-dlq"); want.end {
	case deadLetter:
		w.only(dead, "data", want.code)
		if len(gone) > 0 {
			w.t.Errorf("%d exhausted", len(gone))
		}
	case exhausted:
		w.only(gone, "exhausted", want.code)
		w.headers(gone[0], map[string]string{envelope.RetryAttempt: strconv.Itoa(maxAttempts)})
		if len(dead) > 0 {
			w.t.Errorf("%d dead letters", len(dead))
		}
	}
}

// only checks that only the odd record is in a topic.
func (w *world) only(rs []*kgoRecord, kind, code string) {
	w.t.Helper()
	if got := origins(rs); !slices.Equal(got, []string{strconv.Itoa(oddAt)}) {
		w.t.Fatalf("%s holds the records of offsets %v, want %d alone", kind, got, oddAt)
	}
	w.headers(rs[0], map[string]string{envelope.FailureKind: kind, envelope.FailureCode: code, envelope.OriginalTopic: w.prefix + "logs"})
}

func (w *world) headers(r *kgoRecord, want map[string]string) {
	w.t.Helper()
	for key, value := range want {
		if got := header(r, key); got != value {
			w.t.Errorf("%s is %q at offset %s, want %q", key, got, header(r, envelope.OriginalOffset), value)
		}
	}
}

// all carries records while the table refuses each of them and the probe row. Then it calls repair, which repairs the
// table.
func (w *world) all(want expectation, repair func()) (seen string) {
	w.t.Helper()
	values := make([]string, many)
	for i := range values {
		values[i] = logOf(fmt.Sprintf("%s%d", w.prefix, i), noon, "")
	}
	w.send(values...)
	c := w.start(2)
	held, ok := c.held(3)
	if !ok {
		return "no hold"
	}
	if held.Reason != want.reason || held.Code != want.held {
		w.t.Errorf("holds for %s %s, want %s %s", held.Reason, held.Code, want.reason, want.held)
	}
	copies := 0
	if want.parks {
		copies = 2 * wholeBatches
	}
	w.checkHeld(want, copies)
	var r *program
	if want.parks {
		r = w.replay()
		if _, ok := r.held(3); !ok { // no outage spends an attempt
			return "no hold of the replayer"
		}
		w.checkHeld(want, copies)
	}
	repair()
	c.housed(many, home.Row, home.Parked)
	if want.parks {
		r.housed(copies, home.Row)
		r.stop()
	}
	homes, _ := c.count()
	c.stop()
	if homes[home.Row] != many-copies || homes[home.Parked] != copies {
		w.t.Errorf("homes after all is mended: %v, want %d rows and %d parked", homes, many-copies, copies)
	}
	if n := len(w.rows()); n != many {
		w.t.Errorf("%d rows after all is mended, want %d", n, many)
	}
	if n := len(w.forwarded("parking")); n != copies {
		w.t.Errorf("%d records in the parking topic at the end, want the %d of the outage", n, copies)
	}
	if n := len(w.forwarded("dlq")) + len(w.forwarded("parking-dlq")); n > 0 {
		w.t.Errorf("%d records of an outage are dead letters", n)
	}
	if at := w.committed(); at != many {
		w.t.Errorf("committed %d, want %d", at, many)
	}
	return held.Reason
}

// checkHeld checks the records after a hold: this many parked copies, at attempt 0, and nothing else.
func (w *world) checkHeld(want expectation, copies int) {
	w.t.Helper()
	if n := len(w.rows()); n > 0 {
		w.t.Errorf("%d rows in a table that refuses all", n)
	}
	if n := len(w.forwarded("dlq")) + len(w.forwarded("parking-dlq")); n > 0 {
		w.t.Errorf("%d dead letters while the probe row is refused", n)
	}
	sent := w.forwarded("parking")
	if len(sent) != copies {
		w.t.Errorf("%d parked during the hold, want %d", len(sent), copies)
	}
	for _, r := range sent {
		w.headers(r, map[string]string{envelope.FailureKind: "transient", envelope.FailureCode: want.held, envelope.RetryAttempt: "0"})
	}
	at := int64(copies)
	if copies == 0 {
		at = -1
	}
	if got := w.committed(); got != at {
		w.t.Errorf("committed %d during the hold, want %d", got, at)
	}
}
