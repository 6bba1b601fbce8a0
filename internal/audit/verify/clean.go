package verify

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Kinds of names in a spool directory.
type nameKind int

const (
	nameForeign nameKind = iota
	nameData
	nameMeta
	nameTmp
	nameOwn // the lock, and files in corrupt/
)

var spoolPattern = regexp.MustCompile(`^\d+_[A-Za-z0-9.-]+_\d+\.(jsonl\.gz|meta\.json|jsonl\.gz\.meta\.json)$`)

// spoolName returns the kind of a name in a spool directory; ok reports whether it matches the pattern.
func spoolName(name string) (kind nameKind, ok bool) {
	switch {
	case name == ".lock" || name == "corrupt" || strings.HasPrefix(name, "corrupt/"):
		return nameOwn, true
	case strings.HasSuffix(name, ".tmp"):
		return nameTmp, strings.HasPrefix(name, ".") && spoolPattern.MatchString(strings.TrimSuffix(name[1:], ".tmp"))
	case !spoolPattern.MatchString(name):
		return nameForeign, false
	case strings.HasSuffix(name, ".meta.json"):
		return nameMeta, true
	}
	return nameData, true
}

// tmpAge limits the age of an unfinished file.
const tmpAge = 5 * time.Minute

// clean is I17: goroutines, fds, connections, RSS within 10% of before; no tmp file older than 5 min; spool names
// match the pattern, mode 0600. For small numbers 10% is less than one, so 8 of a kind and 32 MiB are allowed.
func clean(m *sortedEvidence) Result {
	t := m.tally()
	for _, dir := range m.ev.Spool {
		for _, f := range dir.Files {
			t.check()
			for _, wrong := range f.wrong(m.ev.At) {
				t.fault(Place{}, "", fmt.Sprintf("%s/%s %s", dir.Dir, f.Name, wrong))
			}
		}
		t.check()
		if mode := dir.Mode.Perm(); mode&0o077 != 0 {
			t.fault(Place{}, "", fmt.Sprintf("%s has the mode %04o", dir.Dir, mode))
		}
	}
	for _, p := range m.history.Processes {
		t.check()
		for _, grown := range p.grown() {
			t.fault(Place{}, "", p.Name+" has "+grown)
		}
	}
	if t.v.Checked == 0 {
		return undecided("neither a spool nor a process was looked at")
	}
	if len(m.history.Processes) == 0 {
		t.note("no process was measured")
	}
	return t.result(false)
}

// wrong returns the violations of one entry.
func (f SpoolFile) wrong(now time.Time) []string {
	kind, ok := spoolName(f.Name)
	var wrong []string
	if !ok {
		wrong = append(wrong, "has a name that is not of the spool's")
	}
	if kind == nameOwn {
		return wrong
	}
	if mode := f.Mode; mode.Type() != 0 || mode.Perm() != 0o600 {
		wrong = append(wrong, fmt.Sprintf("has the mode %v", mode))
	}
	if age := now.Sub(f.Modified); kind == nameTmp && age > tmpAge {
		wrong = append(wrong, fmt.Sprintf("is unfinished for %v", age.Round(time.Second)))
	}
	if f.Broken != "" {
		wrong = append(wrong, f.Broken)
	}
	return wrong
}

// grown returns the values of a process that are more than 10% above those before.
func (p Process) grown() []string {
	const few, memory = 8, 32 << 20
	var grown []string
	for _, g := range []struct {
		what          string
		before, after int64
		free          int64
	}{
		{"goroutines", int64(p.Before.Goroutines), int64(p.After.Goroutines), few},
		{"file descriptors", int64(p.Before.FDs), int64(p.After.FDs), few},
		{"connections", int64(p.Before.Conns), int64(p.After.Conns), few},
		{"bytes of memory", p.Before.RSS, p.After.RSS, memory},
	} {
		if g.before > 0 && g.after > 0 && g.after > g.before+max(g.before/10, g.free) {
			grown = append(grown, fmt.Sprintf("%d %s, %d before", g.after, g.what, g.before))
		}
	}
	return grown
}
