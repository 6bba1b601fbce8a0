package pgtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/envelope"
)

// Letters is a ledger of dead letters in a database of its own. Its methods fail the test where the ledger fails.
type Letters struct {
	*ledgerdb.Ledger
	*DB
	T testing.TB
}

// Unwatched begins a statement that lets time pass for the ledger, as if nobody had changed it.
const Unwatched = `SET session_replication_role = replica; `

// ClosedOn is the day on which [Letters.Closed] closes letters.
var ClosedOn, _ = archive.ParseDay("2026-03-04")

const (
	lettersFrom = "decision-logs" // the topic that their records came from
	soon        = time.Hour
	atMost      = 3 // attempts
)

var (
	noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)
	ann  = ledger.Actor{Name: "ann", Why: "because"}
	desk = ledger.Actor{Name: "desk-1"}
)

// CheckFailed is the cause of the dead letters of [Letter].
var CheckFailed = envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "check 17 failed", Table: "decision_logs", Constraint: "small"}

// NewLetters gives an empty ledger, in which one person may edit evidence and closed letters may be removed at once.
func NewLetters(t testing.TB) *Letters {
	t.Helper()
	d := &Letters{DB: New(t), T: t}
	d.Ledger = ledgerdb.New(Open(t, d.URL, 0).DB)
	d.KeepFor("-2 hours")
	d.FourEyes(false)
	return d
}

// FourEyes says whether edits of evidence need a second person.
func (d *Letters) FourEyes(on bool) {
	d.T.Helper()
	d.Exec(d.T, `CREATE OR REPLACE FUNCTION dead_letters_four_eyes() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT `+fmt.Sprint(on)+` $$`)
}

// KeepFor has the database keep what is RESOLVED for so long at the least.
func (d *Letters) KeepFor(interval string) {
	d.T.Helper()
	d.Exec(d.T, `CREATE OR REPLACE FUNCTION dead_letters_keep() RETURNS interval LANGUAGE sql STABLE AS $$ SELECT interval '`+interval+`' $$`)
}

// Letter is the dead letter of the record at that offset.
func Letter(offset int64, value string) ledger.Letter {
	o := envelope.Origin{Topic: lettersFrom, Partition: int32(offset % 4), Offset: offset, Index: 0, Timestamp: noon}
	return ledger.Letter{
		ID: envelope.ID(o, []byte(value)), Origin: o, Cause: CheckFailed,
		Found:         ledger.Found{Topic: "decision-logs-dlq", Partition: 1, Offset: offset + 1000, Stamp: noon.Add(time.Minute)},
		FirstFailedAt: noon, FailedAt: noon.Add(time.Duration(offset) * time.Second),
		Key: []byte(fmt.Sprint("key", offset%3)), Value: []byte(value), Path: "a/b", DecisionID: fmt.Sprint("d", offset), DecisionTime: noon,
		Headers: []ledger.Header{{Key: "trace", Value: []byte("x")}, {Key: "null", Value: nil}, {Key: "a\x00", Value: []byte{}}},
	}
}

// Returned is the dead letter of a retried record, which is at that offset of its topic.
func Returned(s ledger.Sending, offset int64) ledger.Letter {
	l := Letter(offset, string(s.Value))
	l.Value, l.Key, l.RetryOf = s.Value, s.Key, s.Mark
	l.ID = envelope.ID(l.Origin, l.Value)
	return l
}

// Entered enters letters, as the desk does.
func (d *Letters) Entered(letters ...ledger.Letter) ledger.EnteredCount {
	d.T.Helper()
	n, err := d.Enter(context.Background(), letters, atMost, desk)
	if err != nil {
		d.T.Fatal(err)
	}
	return n
}

// Retried has letters be retried.
func (d *Letters) Retried(ids ...string) {
	d.T.Helper()
	outcomes, err := d.Retry(context.Background(), ids, soon, ann)
	if err != nil {
		d.T.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Err != nil {
			d.T.Fatal(o.Err)
		}
	}
}

// Claimed claims up to n retries for a minute.
func (d *Letters) Claimed(holder string, n int) []ledger.Sending {
	d.T.Helper()
	s, err := d.Claim(context.Background(), holder, n, time.Minute)
	if err != nil {
		d.T.Fatal(err)
	}
	return s
}

// Placed notes where retries were published.
func (d *Letters) Placed(holder string, p ...ledger.Placed) {
	d.T.Helper()
	if err := d.Published(context.Background(), holder, p, soon); err != nil {
		d.T.Fatal(err)
	}
}

// Put retries a letter and notes that it was published at that offset.
func (d *Letters) Put(id string, offset int64) ledger.Sending {
	d.T.Helper()
	d.Retried(id)
	s := d.Claimed("r", 1)
	if len(s) != 1 || s[0].LetterID != id {
		d.T.Fatalf("claimed %+v", s)
	}
	d.Placed("r", ledger.Placed{SendingID: s[0].ID, Partition: int32(offset % 4), Offset: offset})
	return s[0]
}

// State is the state of a letter, attempts and the act that moved it last.
func (d *Letters) State(id string) string {
	d.T.Helper()
	var s string
	d.Query(d.T, `SELECT coalesce((SELECT format('%s %s %s', state, attempts, changed_act) FROM dead_letters WHERE dead_letter_id = '`+id+`'), 'none')`, &s)
	return s
}

// Text is the one value that a query gives.
func (d *Letters) Text(sql string) string {
	d.T.Helper()
	var s string
	d.Query(d.T, sql, &s)
	return s
}

// Sums fails the test where the counters are not what a count gives.
func (d *Letters) Sums() {
	d.T.Helper()
	for _, differences := range []string{`SELECT count(*)::text FROM (
		SELECT group_id, path, state, sum(n) AS n FROM dead_letter_counts GROUP BY 1, 2, 3 HAVING sum(n) <> 0) c
		FULL JOIN (SELECT group_id, path, state, count(*) AS n FROM dead_letters GROUP BY 1, 2, 3) l USING (group_id, path, state)
		WHERE c.n IS DISTINCT FROM l.n`, `SELECT count(*)::text FROM (
		SELECT day, origin_topic, origin_partition, group_id, state, sum(n) AS n FROM dead_letter_days GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0) c
		FULL JOIN (SELECT (last_failed_at AT TIME ZONE 'UTC')::date AS day, origin_topic, origin_partition, group_id, state, count(*) AS n FROM dead_letters GROUP BY 1, 2, 3, 4, 5) l
		USING (day, origin_topic, origin_partition, group_id, state)
		WHERE c.n IS DISTINCT FROM l.n`} {
		if n := d.Text(differences); n != "0" {
			d.T.Fatalf("%s counters differ from what is counted", n)
		}
	}
}

// Closed resolves letters, on [ClosedOn].
func (d *Letters) Closed(letters ...ledger.Letter) {
	d.T.Helper()
	for _, l := range letters {
		if done, err := d.Resolve(d.T.Context(), []string{l.ID}, ann); err != nil || done[0].Err != nil {
			d.T.Fatal(done, err)
		}
	}
	d.Aged()
}

// Aged has all that is RESOLVED closed on [ClosedOn].
func (d *Letters) Aged() {
	d.T.Helper()
	d.Exec(d.T, Unwatched+`UPDATE dead_letters SET changed_at = '`+ClosedOn.String()+` 23:59:59.999999Z' WHERE state = 'RESOLVED' AND changed_act <> 'restored'`)
}

// Tried runs a statement that may fail.
func (d *Letters) Tried(sql string) error {
	d.T.Helper()
	conn, err := pgx.Connect(d.T.Context(), d.URL)
	if err != nil {
		d.T.Fatal(err)
	}
	_, err = conn.Exec(d.T.Context(), sql)
	return errors.Join(err, conn.Close(d.T.Context()))
}

// Shelved has all that is RESOLVED noted as archived.
func (d *Letters) Shelved() {
	d.T.Helper()
	d.Exec(d.T, `UPDATE dead_letters SET archived_in = 'archive-1' WHERE state = 'RESOLVED' AND archived_in IS NULL`)
}

// Removed removes up to 100 closed letters, and says how many it were.
func (d *Letters) Removed() int {
	d.T.Helper()
	n, err := d.Remove(d.T.Context(), time.Now().Add(-time.Hour), 100, desk)
	if err != nil {
		d.T.Fatal(err)
	}
	return n
}

// Carrier archives letters on a shelf, and restores them from it.
func (d *Letters) Carrier(shelf string) *archive.LettersCarrier {
	d.T.Helper()
	return &archive.LettersCarrier{Table: historydb.NewLetterArchives(Open(d.T, d.URL, 0).DB), Shelf: archive.Dir(shelf), By: "mara", Docket: "test", Now: time.Now, PartRows: 2}
}
