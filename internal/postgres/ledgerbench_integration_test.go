//go:build integration

package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/ledger"
)

// BenchmarkEnter enters letters of 1.5 KB by the thousand.
func BenchmarkEnter(b *testing.B) {
	const batch = 1000
	d := newDesk(b)
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
		if n := d.enter(letters...); n.New != batch {
			b.Fatalf("%+v", n)
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "letters/s")
}

// BenchmarkDeadAgain takes retries back, all dead, by the thousand.
func BenchmarkDeadAgain(b *testing.B) {
	const batch = 1000
	d := newDesk(b)
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
		d.enter(letters...)
		d.retry(ids...)
		sent := d.claim("r", batch)
		placed, dead := make([]ledger.Placed, batch), make([]ledger.Letter, batch)
		for i, s := range sent {
			offset++
			placed[i], dead[i] = ledger.Placed{SendingID: s.ID, Partition: int32(offset % 4), Offset: offset}, home(s, offset)
		}
		d.published("r", placed...)
		b.StartTimer()
		if n := d.enter(dead...); n.DeadAgain != batch {
			b.Fatalf("%+v", n)
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "letters/s")
}
