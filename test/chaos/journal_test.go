//go:build integration

package chaos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// journal is what happened: to the screen in short, to a file in full, and as counts for the closing table.
type journal struct {
	start time.Time
	file  *os.File

	mu       sync.Mutex
	findings []finding
	active   map[string]int // faults under way
	injected map[string]int
	failed   map[string]int // could not be done, mostly because another fault was in the way
	kills    map[string]int // processes killed, by how
	commits  []commits
	episodes []episode // faults that are over
}

// finding is something that is not as it has to be.
type finding struct {
	after time.Duration
	where string
	what  string
}

func newJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for logs: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "logs", "campaign.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the campaign's log: %w", err)
	}
	return &journal{
		start: time.Now(), file: file, active: map[string]int{}, injected: map[string]int{}, failed: map[string]int{}, kills: map[string]int{},
	}, nil
}

// say writes a line for people who wait.
func (j *journal) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(os.Stderr, "chaos %6.1fs  %s\n", time.Since(j.start).Seconds(), line)
	j.note("%s", line)
}

// note writes a line for people who search later.
func (j *journal) note(format string, args ...any) {
	now := time.Now()
	fmt.Fprintf(j.file, "%s %7.2f %s\n", now.UTC().Format("15:04:05.000"), now.Sub(j.start).Seconds(), fmt.Sprintf(format, args...))
}

// broken writes down a finding: the campaign has failed, and continues.
func (j *journal) broken(where, format string, args ...any) {
	f := finding{time.Since(j.start), where, fmt.Sprintf(format, args...)}
	j.mu.Lock()
	j.findings = append(j.findings, f)
	n := len(j.findings)
	active := j.underWay()
	j.mu.Unlock()
	const shown = 20
	if n <= shown {
		j.say("FOUND in %s: %s (under way: %s)", f.where, f.what, active)
		return
	}
	j.note("FOUND in %s: %s", f.where, f.what)
}

func (j *journal) clean() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.findings) == 0
}

// underWay lists the faults that are active. The caller has the lock.
func (j *journal) underWay() string {
	if len(j.active) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(j.active)), "; ")
}

func (j *journal) activeFaults() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.underWay()
}

// enter writes down that a fault is under way, leave that it is not any more.
func (j *journal) enter(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active[name]++
}

func (j *journal) leave(name string, happened episode) {
	happened.whole.To = time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.episodes = append(j.episodes, happened)
	if j.active[name]--; j.active[name] == 0 {
		delete(j.active, name)
	}
}

func (j *journal) count(in map[string]int, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	in[name]++
}

func (j *journal) close() { _ = j.file.Close() }
