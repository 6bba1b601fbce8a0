//go:build integration

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"docket/internal/testkit/testenv"
)

func memory() string {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "memory unknown"
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return "memory unknown"
	}
	kib, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%d GiB", kib>>20)
}

// kafkaVersion is that of the image, which the broker itself does not say in so many words.
func kafkaVersion() string {
	_, version, _ := strings.Cut(testenv.KafkaImage, ":")
	return version
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// settings say in what the worker differs from one that is started with nothing but addresses.
func (b *bench) settings() []string {
	notes := []string{
		"The worker has its default settings but for addresses, topic and group, and a spool in a folder for temporary files.",
		fmt.Sprintf("A run in which others used more than %.0f %% of the machine is made again up to %d times, in the first %v of a whole run, and the one that was disturbed least is taken.",
			Noisy*100, b.Repeat, repeatUntil),
	}
	if b.Does("bad") {
		notes = append(notes, "Batches of 10,000: "+strings.Join(oneBatch, ", ")+", so that all are in one batch.")
	}
	if b.Does("replay") {
		notes = append(notes, "Parking: "+strings.Join(parkingAll, ", ")+", so that nothing holds and all is due.")
	}
	return notes
}

// write prints the page, and writes it into the file that was asked for.
func (b *bench) write(t *testing.T) {
	t.Helper()
	page := Page{Machine: b.machine(t.Context()), Rows: b.rows, Notes: b.settings(), Tables: b.tables}
	for _, name := range b.order {
		page.Seen = append(page.Seen, Seen{Name: name, Runs: b.runs[name]})
	}
	var text strings.Builder
	page.Markdown(&text)
	fmt.Fprint(os.Stdout, "\n", text.String())
	if b.Out != "" {
		check(t, os.WriteFile(b.Out, []byte(text.String()), 0o644))
	}
}
