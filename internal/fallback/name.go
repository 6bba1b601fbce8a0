package fallback

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	dataSuffix   = ".jsonl.gz"
	metaSuffix   = ".meta.json"
	tmpSuffix    = ".tmp"
	oversizeMark = ".oversize" // ends the instance part of a file of oversize lines
	lockName     = ".lock"
	corruptDir   = "corrupt"
	maxInstance  = 64
)

// errForeign marks a name like the spool's that is not a file of the spool.
var errForeign = errors.New("not a regular file of this user with one link")

// stem is the common part of a data file and its meta: <unix seconds>_<instance>_<counter>. It is generated, never
// derived from the content of a record.
type stem struct {
	text    string
	unix    int64
	counter uint64
}

func newStem(now time.Time, instance string, counter uint64, oversize bool) stem {
	if oversize {
		instance += oversizeMark
	}
	return stem{
		text:    fmt.Sprintf("%d_%s_%06d", now.Unix(), instance, counter),
		unix:    now.Unix(),
		counter: counter,
	}
}

func (s stem) data() string       { return s.text + dataSuffix }
func (s stem) meta() string       { return s.text + metaSuffix }
func (s stem) created() time.Time { return time.Unix(s.unix, 0) }

// oversize reports whether the file holds lines that the broker refused as too large.
func (s stem) oversize() bool {
	parts := strings.Split(s.text, "_")
	return len(parts) == 3 && strings.HasSuffix(parts[1], oversizeMark)
}

// older orders by age: second, then counter, then name.
func older(a, b stem) int {
	return cmp.Or(cmp.Compare(a.unix, b.unix), cmp.Compare(a.counter, b.counter), cmp.Compare(a.text, b.text))
}

func parseStem(text string) (stem, bool) {
	parts := strings.Split(text, "_")
	if len(parts) != 3 || len(text) > 200 || parts[1] == "" || parts[1] != cleanInstance(parts[1]) {
		return stem{}, false
	}
	unix, err := strconv.ParseUint(parts[0], 10, 40)
	if err != nil {
		return stem{}, false
	}
	counter, err := strconv.ParseUint(parts[2], 10, 63)
	if err != nil {
		return stem{}, false
	}
	return stem{text: text, unix: int64(unix), counter: counter}, true
}

// kind is the kind of a directory entry, by its name.
type kind int

const (
	kindForeign kind = iota
	kindOwn          // the lock and corrupt/
	kindTmp
	kindData
	kindMeta
)

// classify returns the kind of a name, and the stem of data, meta and tmp files. A meta may also be spelled <data
// file>.meta.json, as in the first format.
func classify(name string) (stem, kind) {
	if name == lockName || name == corruptDir {
		return stem{}, kindOwn
	}
	if rest, ok := strings.CutPrefix(name, "."); ok {
		rest, ok = strings.CutSuffix(rest, tmpSuffix)
		if f, k := classify(rest); ok && (k == kindData || k == kindMeta) {
			return f, kindTmp
		}
		return stem{}, kindForeign
	}
	if rest, ok := strings.CutSuffix(name, metaSuffix); ok {
		return withKind(strings.TrimSuffix(rest, dataSuffix), kindMeta)
	}
	if rest, ok := strings.CutSuffix(name, dataSuffix); ok {
		return withKind(rest, kindData)
	}
	return stem{}, kindForeign
}

func withKind(text string, k kind) (stem, kind) {
	s, ok := parseStem(text)
	if !ok {
		return stem{}, kindForeign
	}
	return s, k
}

func tmpName(name string) string { return "." + name + tmpSuffix }

// sanitise makes an instance name that is valid in a file name and differs from the oversize mark.
func sanitise(instance string) string {
	instance = cleanInstance(instance)
	if len(instance) > maxInstance {
		instance = instance[:maxInstance]
	}
	if rest, ok := strings.CutSuffix(instance, oversizeMark); ok {
		instance = rest + "-oversize"
	}
	return cmp.Or(instance, DefaultInstance)
}

func cleanInstance(instance string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, instance)
}
