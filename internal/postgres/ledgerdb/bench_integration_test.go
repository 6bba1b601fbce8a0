//go:build integration

package ledgerdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/testkit/pgtest"
)

// BenchmarkEnter enters letters of 1.5 KB by the thousand.
func BenchmarkEnter(b *testing.B) {
	const batch = 1000
	d := newLedger(b)
	body := strings.Repeat("0123456789abcdef", 96)
	offset := int64(0)
	for b.Loop() {
		b.StopTimer()
		letters := make([]ledger.Letter, batch)
		for i := range letters {
			offset++
			letters[i] = letter(offset, fmt.Sprint(offset, body))
			letters[i].Path = fmt.Sprint("path/", offset%20)
			letters[i].RetryOf = ""
		}
		b.StartTimer()
		if n := d.Entered(letters...); n.New != batch {
			b.Fatalf("%+v", n)
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "letters/s")
}

// BenchmarkDeadAgain takes retries back, all dead, by the thousand.
func BenchmarkDeadAgain(b *testing.B) {
	const batch = 1000
	d := newLedger(b)
	body := strings.Repeat("0123456789abcdef", 96)
	offset := int64(0)
	for b.Loop() {
		b.StopTimer()
		letters, ids := make([]ledger.Letter, batch), make([]string, batch)
		for i := range letters {
			offset++
			letters[i] = letter(offset, fmt.Sprint(offset, body))
			ids[i] = letters[i].ID
		}
		d.Entered(letters...)
		d.Retried(ids...)
		sent := d.Claimed("r", batch)
		placed, dead := make([]ledger.Placed, batch), make([]ledger.Letter, batch)
		for i, s := range sent {
			offset++
			placed[i], dead[i] = ledger.Placed{SendingID: s.ID, Partition: int32(offset % 4), Offset: offset}, home(s, offset)
		}
		d.Placed("r", placed...)
		b.StartTimer()
		if n := d.Entered(dead...); n.DeadAgain != batch {
			b.Fatalf("%+v", n)
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "letters/s")
}

// BenchmarkMoved moves 100,000 letters of 1.5 KB with one statement. In turn it does so with and without the audit's facts of the session
// and the look for changes that no move accounts for.
func BenchmarkMoved(b *testing.B) {
	const letters = 100_000
	d := newLedger(b)
	d.Entered(letter(1, one))
	d.Exec(b, fmt.Sprintf(`INSERT INTO dead_letters (dead_letter_id, group_id, path, origin_topic, origin_partition, origin_offset, found_topic, found_partition, found_offset, found_at,
			key, value, headers, message, first_failed_at, last_failed_at, changed_by, changed_act, why)
		SELECT 'b' || n, l.group_id, 'path/' || n %% 20, 't', n %% 4, n, 'dlq', 0, n, now(), l.key, convert_to(n || repeat(md5(n::text), 48), 'UTF8'), l.headers, l.message, now(), now(), 'bench', 'entered', ''
		  FROM dead_letters l, generate_series(1, %d) n`, letters))
	d.Exec(b, `VACUUM ANALYZE dead_letters`)
	move := func() time.Duration {
		began := time.Now()
		d.Exec(b, `UPDATE dead_letters SET state = 'PROCESSING', changed_at = clock_timestamp(), changed_by = 'bench', changed_act = 'retried', why = 'b', owner = 'bench', lease_until = clock_timestamp() WHERE changed_by = 'bench'`)
		took := time.Since(began)
		d.Exec(b, pgtest.Unwatched+`UPDATE dead_letters SET state = 'PENDING', owner = NULL`)
		d.Exec(b, `VACUUM dead_letters`)
		return took
	}
	var with, without time.Duration
	for b.Loop() {
		with += move()
		d.Exec(b, `ALTER TABLE dead_letters DISABLE TRIGGER other; ALTER TABLE dead_letter_audit ALTER login DROP DEFAULT, ALTER application DROP DEFAULT, ALTER client DROP DEFAULT`)
		without += move()
		d.Exec(b, `ALTER TABLE dead_letters ENABLE TRIGGER other; ALTER TABLE dead_letter_audit ALTER login SET DEFAULT session_user,
			ALTER application SET DEFAULT nullif(current_setting('application_name'), ''), ALTER client SET DEFAULT inet_client_addr()`)
	}
	b.ReportMetric(with.Seconds()/float64(b.N), "s/move")
	b.ReportMetric(with.Seconds()/without.Seconds(), "ratio")
}
