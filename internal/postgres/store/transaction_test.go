package store

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestLimits_BelowTheClients(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var statement, lock, idle int
	got := limits(remaining(ctx))
	if _, err := fmt.Sscan(string(got[0])+" "+string(got[1])+" "+string(got[2]), &statement, &lock, &idle); err != nil {
		t.Fatal(err)
	}
	if !(0 < lock && lock < statement && statement < 54_000-5_000 && idle <= 60_000) {
		t.Fatalf("statement %d, lock %d, idle %d", statement, lock, idle)
	}
	over, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, l := range limits(remaining(over)) {
		if string(l) != "1" { // 0 would be no limit at all
			t.Errorf("after the deadline: %s", l)
		}
	}
}

func TestLimits_BelowTheTimeLeft(t *testing.T) {
	t.Parallel()
	if !(&transaction{}).outgrown(time.Hour) {
		t.Error("a transaction without limits needs none")
	}
	kept := 0
	for gone := time.Duration(0); gone <= time.Minute; gone += 100 * time.Millisecond {
		left, set := time.Minute-gone, &transaction{left: time.Minute}
		if set.outgrown(left) {
			continue
		}
		kept++
		var statement int64
		if _, err := fmt.Sscan(string(limits(set.left)[0]), &statement); err != nil {
			t.Fatal(err)
		}
		if statement >= left.Milliseconds() {
			t.Errorf("a statement may take %d ms, and %v are left", statement, left)
		}
	}
	if kept == 0 {
		t.Error("limits are sent with each statement")
	}
}

func TestCommit_AmbiguousUnlessRefused(t *testing.T) {
	t.Parallel()
	refusal := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "23503"}
	fatal := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "FATAL", Code: "57P01"}
	pooler := &pgconn.PgError{Severity: "FATAL", Code: "08P01"} // its own words, not a server's
	for name, c := range map[string]struct {
		err       error
		ambiguous bool
	}{
		"refused": {refusal, false}, "fatal": {fatal, true}, "fatal of a pooler": {pooler, true}, "lost": {io.EOF, true}, "late": {context.DeadlineExceeded, true},
	} {
		if marked := lostCommit(c.err) != c.err; marked != c.ambiguous {
			t.Errorf("%s: marked %v, want %v", name, marked, c.ambiguous)
		}
	}
}
