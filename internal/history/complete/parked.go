package complete

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
)

// The parked decisions that are kept, and the bytes that are read in one look. Beyond these nothing is known of the
// time of parked decisions.
const (
	mostParked  = 20_000
	mostScanned = 64 << 20
)

// waiter is a parked decision.
type waiter struct {
	at      time.Time // zero: it could not be read
	path    string
	service string
	unread  bool // its time and path are not known
}

// parking follows the parked records that are not replayed.
type parking struct {
	read map[int32]int64              // first offset that was not read, by partition
	kept map[int32]map[int64][]waiter // by partition and offset
	done map[int32]int64              // the replayer's offsets at the last look
	more bool                         // there are some that are not kept
}

// snapshot is what is parked at a time. It does not change.
type snapshot struct {
	all   []waiter
	whole bool // all has every one
}

var errEnough = errors.New("enough parked records")

// follow reads the records between the ends of the last look and these. done are the replayer's offsets.
func (k *parking) follow(ctx context.Context, log Log, topic string, done, ends map[int32]int64, most int64) error {
	if k.read == nil {
		k.read, k.kept = map[int32]int64{}, map[int32]map[int64][]waiter{}
	}
	from, n := map[int32]int64{}, 0
	for p, end := range ends {
		if k.read[p] > end || done[p] < k.done[p] { // an earlier topic of this name, or the replayer begins again
			delete(k.read, p)
			delete(k.kept, p)
		}
		if from[p] = k.read[p]; done[p] <= end { // an offset beyond the end is from an earlier topic of this name
			from[p] = max(from[p], done[p])
		}
		maps.DeleteFunc(k.kept[p], func(offset int64, _ []waiter) bool { return offset < done[p] && done[p] <= end })
		for _, of := range k.kept[p] {
			n += len(of)
		}
	}
	k.done = maps.Clone(done)
	to := map[int32]int64{}
	for p, end := range ends {
		if from[p] < end {
			to[p] = end
		}
	}
	k.more = false
	if len(to) == 0 {
		return nil
	}
	var bytes int64
	_, err := log.Scan(ctx, topic, from, to, func(r *kgo.Record) error {
		if bytes += int64(len(r.Value)); n >= mostParked || bytes > mostScanned {
			return errEnough
		}
		if k.kept[r.Partition] == nil {
			k.kept[r.Partition] = map[int64][]waiter{}
		}
		of := waitersOf(r.Value, most)
		n += len(of)
		k.kept[r.Partition][r.Offset], k.read[r.Partition] = of, r.Offset+1
		return nil
	})
	if errors.Is(err, errEnough) {
		k.more = true
		return nil
	}
	if err != nil {
		return err
	}
	maps.Copy(k.read, to)
	return nil
}

// snapshot copies what is kept.
func (k *parking) snapshot() *snapshot {
	s := &snapshot{whole: !k.more}
	for _, of := range k.kept {
		for _, all := range of {
			s.all = append(s.all, all...)
		}
	}
	return s
}

// waitersOf returns the decisions of a parked record. A value that does not read as decisions is one.
func waitersOf(value []byte, most int64) (all []waiter) {
	defer func() {
		if recover() != nil { // no value may end a look
			all = []waiter{{unread: true}}
		}
	}()
	read, refused := decision.Decode(value, most)
	if refused != nil || len(read.Parts) == 0 {
		return []waiter{{unread: true}}
	}
	for i := range read.Parts {
		part := &read.Parts[i]
		if part.Err != nil {
			all = append(all, waiter{unread: true})
			continue
		}
		all = append(all, waiter{at: part.Log.Time, path: strings.Clone(part.Log.Path.V), service: strings.Clone(part.Log.Service.V)})
	}
	return all
}

// count counts those that may be in a range; nil: it is not known.
func (s *snapshot) count(r Range) *int64 {
	if s == nil || !s.whole {
		return nil
	}
	var n int64
	for i := range s.all {
		if w := &s.all[i]; w.unread || r.has(w.at, w.path, w.service) {
			n++
		}
	}
	return &n
}

// Range is the part of the decisions that is asked for. The zero value is all.
type Range struct {
	Since, Until time.Time // Since <= ts < Until; zero: no limit
	// Paths are whole paths, or all below one if it ends in "/*"; Services are first segments. Empty: all.
	Paths, Services []string
}

func (r Range) has(at time.Time, path, service string) bool {
	if at.Before(r.Since) || !r.Until.IsZero() && !at.Before(r.Until) {
		return false
	}
	if len(r.Services) > 0 && !slices.Contains(r.Services, service) {
		return false
	}
	return len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(p string) bool {
		below, many := strings.CutSuffix(p, "/*")
		return p == path || many && strings.HasPrefix(path, below+"/")
	})
}
