//go:build synctests

package sim

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// history has the events of one schedule in words, and the trace of every effect.
type history struct {
	mu      sync.Mutex
	began   time.Time
	lines   []line
	effects int
	trace   hash.Hash64
	tell    func(string) // called for every line; nil: not called
	every   bool         // report effects too
}

type line struct {
	at                time.Duration
	what, who, detail string
}

func (l line) String() string {
	return strings.TrimRight(fmt.Sprintf("%8.3fs  %-12s %s %s", l.at.Seconds(), l.who, l.what, l.detail), " ")
}

func newHistory() *history { return &history{began: time.Now(), trace: fnv.New64a()} }

// since returns the present virtual time.
func (h *history) since() time.Duration { return time.Since(h.began) }

// at converts a time for the history.
func (h *history) at(t time.Time) time.Duration { return t.Sub(h.began) }

func (h *history) add(what, who, detail string) {
	l := line{h.since(), what, who, detail}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l)
	h.hash(l.at, who, what, len(detail))
	if h.tell != nil {
		h.tell(l.String())
	}
}

// effect notes an effect that is visible outside a process.
func (h *history) effect(who, what string, size int) {
	at := h.since()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.effects++
	h.hash(at, who, what, size)
	if h.every && h.tell != nil {
		h.tell(line{at, what, who, fmt.Sprint(size)}.String())
	}
}

func (h *history) hash(at time.Duration, who, what string, size int) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(at))
	binary.LittleEndian.PutUint64(b[8:], uint64(size))
	_, _ = h.trace.Write(b[:]) // a hash takes everything
	_, _ = h.trace.Write([]byte(who))
	_, _ = h.trace.Write([]byte(what))
}

// String lists the schedule's events, in order, without the commits.
func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, l := range h.lines {
		if l.what == "commits" {
			continue // there are hundreds; the story of a record has its own
		}
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.String()
}

var requests = func() (names [96]string) {
	for key := range names {
		names[key] = "kafka " + kmsg.NameForKey(int16(key))
	}
	return names
}()

// label names the message that is written on a connection.
func label(kind string, b []byte) string {
	if kind == toKafka && len(b) >= 6 {
		if key := int(binary.BigEndian.Uint16(b[4:])); key < len(requests) {
			return requests[key]
		}
	}
	return kind
}
