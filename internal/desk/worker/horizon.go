package worker

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// Retention is how long a topic keeps its records.
type Retention struct {
	Time  time.Duration // negative: no limit
	Known bool          // false: the brokers did not say
	Bytes int64         // limit for a partition; 0 or less: none
}

// Unread is the part of a topic that a group has not read.
type Unread struct {
	Oldest  time.Time // earliest Kafka timestamp among the first records of all partitions; zero: all is read
	Records int64     // offsets between the commits and the ends
	Gone    int64     // offsets that were deleted before the group read them
}

// Backlog is the part of the dead-letter topics that is not in the ledger.
type Backlog struct {
	Records int64 // not entered by any desk yet
	Gone    int64 // deleted before a desk entered them
}

// Logs are the topics, for the loss horizon.
type Logs interface {
	// Retention returns that of a topic. If its cleanup policy does not delete, Time is negative.
	Retention(ctx context.Context, topic string) (Retention, error)
	Unread(ctx context.Context, topic, group string) (Unread, error)
}

// Finds returns the oldest unresolved records of the dead-letter topics. [ledger.Reader] does.
type Finds interface {
	OldestFound(ctx context.Context) (map[string]time.Time, error)
}

// LaneSource is the topic of a lane, and the group that stores its records.
type LaneSource struct{ Lane, Topic, Group string }

// HorizonConfig names the topics that can lose records, and their groups.
type HorizonConfig struct {
	Sources                    []LaneSource // of all lanes
	ParkingTopic, ParkingGroup string
	DLQTopic, ParkingDLQTopic  string
	DeskGroup                  string // reads both dead-letter topics
}

// Horizon computes when retention deletes records that are still needed.
type Horizon struct {
	cfg   HorizonConfig
	logs  Logs
	finds Finds
}

// NewHorizon makes a horizon. It asks nothing.
func NewHorizon(cfg HorizonConfig, logs Logs, finds Finds) *Horizon {
	return &Horizon{cfg: cfg, logs: logs, finds: finds}
}

// HorizonLine is the result for one topic.
type HorizonLine struct {
	Topic  string `json:"topic"`
	Parked bool   `json:"parked"` // the parking topic
	// Lane is set for its source topic. A topic without Lane and Parked is a dead-letter topic.
	Lane string `json:"lane,omitempty"`
	// Oldest is the Kafka timestamp of the oldest record that is still needed; zero: there is none.
	Oldest time.Time `json:"oldest,omitzero"`
	// Unread records may be nowhere but in the topic: parked ones, dead letters that the desk has not read, and records
	// of a lane that its consumers have not committed.
	Unread       int64     `json:"unread"`
	OldestUnread time.Time `json:"oldest_unread,omitzero"`
	// Gone records were deleted before they were read. They are lost.
	Gone int64 `json:"gone"`

	RetentionKnown   bool  `json:"retention_known"`
	Forever          bool  `json:"forever"`           // nothing is deleted by time
	RetentionSeconds int64 `json:"retention_seconds"` // 0 if unlimited or not known
	BytesLimited     bool  `json:"bytes_limited"`     // retention.bytes is set: it may be earlier
	// Deadline is when Oldest may be deleted. LossAt is when the first record without another copy may be. Zero:
	// never, or not known.
	Deadline    time.Time `json:"deadline,omitzero"`
	LossAt      time.Time `json:"loss_at,omitzero"`
	LeftSeconds int64     `json:"left_seconds"` // to the deadline; negative: it has passed
	Used        float64   `json:"used"`         // share of the retention that has passed for Oldest; from 1 on it may be deleted any moment

	// Error says why nothing is known, else it is empty.
	Error string `json:"error,omitempty"`
}

// horizonTimeout limits the requests about one topic.
const horizonTimeout = 20 * time.Second

// Look checks all topics at once. Those of lanes come last. Errors are in the lines.
func (h *Horizon) Look(ctx context.Context, now time.Time) []HorizonLine {
	ctx, cancel := context.WithTimeout(ctx, horizonTimeout)
	defer cancel()
	found, foundErr := h.finds.OldestFound(ctx)
	lines := []HorizonLine{{Topic: h.cfg.ParkingTopic, Parked: true}, {Topic: h.cfg.DLQTopic}, {Topic: h.cfg.ParkingDLQTopic}}
	groups := []string{h.cfg.ParkingGroup, h.cfg.DeskGroup, h.cfg.DeskGroup}
	for _, s := range h.cfg.Sources {
		lines, groups = append(lines, HorizonLine{Topic: s.Topic, Lane: s.Lane}), append(groups, s.Group)
	}
	var all sync.WaitGroup
	for i := range lines {
		l := &lines[i]
		all.Go(func() {
			oldest, err := time.Time{}, error(nil)
			if l.deadLetters() {
				oldest, err = found[l.Topic], foundErr
			}
			if err == nil {
				err = h.fill(ctx, l, groups[i], oldest)
			}
			if err != nil {
				*l = HorizonLine{Topic: l.Topic, Parked: l.Parked, Lane: l.Lane, Error: err.Error()}
				return
			}
			l.reckon(now)
		})
	}
	all.Wait()
	return lines
}

func (h *Horizon) fill(ctx context.Context, l *HorizonLine, group string, oldest time.Time) error {
	kept, err := h.logs.Retention(ctx, l.Topic)
	if err != nil {
		return fmt.Errorf("retention of topic %s: %w", l.Topic, err)
	}
	unread, err := h.logs.Unread(ctx, l.Topic, group)
	if err != nil {
		return fmt.Errorf("unread records of group %s in topic %s: %w", group, l.Topic, err)
	}
	l.RetentionKnown, l.BytesLimited = kept.Known, kept.Known && kept.Bytes > 0
	l.Forever = kept.Known && kept.Time < 0
	if kept.Known && !l.Forever {
		l.RetentionSeconds = int64(kept.Time / time.Second)
	}
	l.Unread, l.OldestUnread, l.Gone = unread.Records, unread.Oldest, unread.Gone
	l.Oldest = oldest
	if !unread.Oldest.IsZero() && (oldest.IsZero() || unread.Oldest.Before(oldest)) {
		l.Oldest = unread.Oldest
	}
	return nil
}

// reckon fills in the computed fields.
func (l *HorizonLine) reckon(now time.Time) {
	if !l.RetentionKnown || l.Forever || l.Oldest.IsZero() {
		return
	}
	kept := time.Duration(l.RetentionSeconds) * time.Second
	l.Deadline = l.Oldest.Add(kept)
	if !l.OldestUnread.IsZero() {
		l.LossAt = l.OldestUnread.Add(kept)
	}
	l.LeftSeconds = int64(l.Deadline.Sub(now) / time.Second)
	l.Used = 1
	if kept > 0 {
		l.Used = max(0, float64(now.Sub(l.Oldest))/float64(kept))
	}
}

// halfway is the share of the retention that raises an alarm.
const halfway = 0.5

// deadLetters reports whether it is a dead-letter topic.
func (l *HorizonLine) deadLetters() bool { return !l.Parked && l.Lane == "" }

// safe reports whether the ledger has all needed records of the topic.
func (l *HorizonLine) safe() bool { return l.deadLetters() && l.Unread == 0 && l.Gone == 0 }

// level is 0 without an alarm. It at least doubles when the remaining time has halved, when it is over, and when
// records are lost.
func (l *HorizonLine) level() int64 {
	const over, gone = 1 << 22, 1 << 24
	switch {
	case l.Gone > 0:
		return gone
	case l.Used < halfway:
		return 0
	case l.Used >= 1:
		return over
	}
	return int64(math.Round(1024 / max(1-l.Used, 1.0/1024)))
}
