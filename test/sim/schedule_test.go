//go:build synctests

package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// schedule is one run as data. It is made from its seed before anything happens, so that a failure can show it.
type schedule struct {
	Seed       uint64
	Brokers    int
	Partitions int32 // of the source topic
	Forwards   int32 // partitions of parking and dead-letter topics
	Consumers  int
	Replayers  int
	Desks      int // the last slots
	Decided    []decided
	Sweep      bool    // at the end the operator retries the rest
	ByJob      bool    // by a job
	Orders     []order // jobs
	Edits      []editing
	Rulings    []ruling // rules and snoozes
	Attempts   int
	MaxEntered int      // limit of a client's dead letters in an hour; 0: none
	Settings   []string // of all processes
	Lanes      []string // beside the default one
	Limited    bool     // rows a second are limited
	NoSpool    []bool   // by slot: no spool
	Rests      []string // by slot: the pause before the first replay of its parked records, as during a change of settings
	Starts     []time.Duration
	Table      foreign
	Arrivals   []arrival
	Events     []event
	Healed     time.Duration // end of the last fault

	borne time.Duration // sum of the time in which single rows fail
}

// arrival is a record to produce.
type arrival struct {
	At        time.Duration
	Record    int // of the pool
	Partition int32
	Lane      int // of the lanes of the schedule; 0: the default one
	Twist     twist
	Flood     bool // Record is one of [floods]
}

// twist is the change of a record of the pool before it is produced.
type twist int

const (
	asIs     twist = iota
	contrary       // the same identity with another payload, for a single good decision
)

// event is a fault at a time. A temporary fault ends after For; a process comes back after For.
type event struct {
	At   time.Duration
	What string
	Arg  string
	Slot int
	N    int
	For  time.Duration
}

func (e event) String() string {
	return fmt.Sprintf("%7.3fs %s %s slot=%d n=%d for=%v", e.At.Seconds(), e.What, e.Arg, e.Slot, e.N, e.For)
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: lanes %v, %d brokers, %d partitions, %d forwarding, %d consumers, %d replayers, %d desks, %d records, table %+v, without spool %v, rests %v, starts %v\n  %s\n",
		s.Seed, s.Lanes, s.Brokers, s.Partitions, s.Forwards, s.Consumers, s.Replayers, s.Desks, len(s.Arrivals), s.Table, s.NoSpool, s.Rests, s.Starts, strings.Join(s.Settings, " "))
	for _, e := range s.Events {
		fmt.Fprintf(&b, "  %v\n", e)
	}
	for _, c := range s.Decided {
		fmt.Fprintf(&b, "  %+v\n", c)
	}
	for _, o := range s.Orders {
		fmt.Fprintf(&b, "  %+v\n", o)
	}
	for _, r := range s.Rulings {
		fmt.Fprintf(&b, "  %+v\n", r)
	}
	for _, e := range s.Edits {
		fmt.Fprintf(&b, "  %+v\n", e)
	}
	fmt.Fprintf(&b, "  %7.3fs all is healed\n", s.Healed.Seconds())
	return b.String()
}

// dice are the random numbers of a schedule.
type dice struct{ *rand.Rand }

func (d dice) between(from, to time.Duration) time.Duration {
	return (from + time.Duration(d.Int64N(int64(to-from)+1))).Truncate(time.Millisecond)
}

func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// plan makes the schedule of a seed.
func plan(seed uint64) *schedule {
	d := dice{rand.New(rand.NewPCG(seed, 0xd0c4e7))}
	s := &schedule{
		Seed: seed, Brokers: one(d, 1, 1, 2, 3), Partitions: int32(1 + d.IntN(4)), Forwards: int32(1 + d.IntN(2)),
		Consumers: one(d, 1, 1, 2, 2, 3), Replayers: one(d, 1, 1, 1, 2), Desks: one(d, 0, 0, 1, 1, 2), Sweep: d.IntN(2) == 0,
	}
	s.settings(d)
	slots := s.Consumers + s.Replayers + s.Desks
	for range slots {
		s.NoSpool = append(s.NoSpool, d.IntN(6) == 0)
		s.Rests = append(s.Rests, one(d, "100ms", "500ms", "1s", "2s", "4s"))
		s.Starts = append(s.Starts, one(d, 0, 0, 0, d.between(0, 5*time.Second)))
	}
	s.arrivals(d)
	s.Table = one(d, foreign{}, foreign{}, foreign{Refuses: true}, foreign{Swallows: true}, foreign{Masks: true}, foreign{true, true, true})
	s.operators(d)
	for range 3 + d.IntN(10) {
		e := one(d, evils...).draw(d, s)
		e.At, e.Slot = d.between(0, 10*time.Second), d.IntN(slots)
		if e.For == 0 {
			e.For = one(d, d.between(100*time.Millisecond, time.Second), d.between(time.Second, 8*time.Second))
		}
		s.Events = append(s.Events, e)
		s.Healed = max(s.Healed, e.At+e.For)
	}
	s.orders(d)
	s.edits(d)
	s.ByJob = d.IntN(2) == 0
	slices.SortStableFunc(s.Events, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	s.floods()
	s.lanesDrawn()
	s.limitDrawn()
	s.rulings()
	return s
}

// operators draws acts on dead letters, most of them during faults.
func (s *schedule) operators(d dice) {
	for range min(s.Desks, 1) * d.IntN(12) {
		s.Decided = append(s.Decided, decided{
			At: d.between(time.Second, 14*time.Second), Letter: d.IntN(100), Many: d.IntN(4), Twice: d.IntN(4) == 0, Closed: d.IntN(10) == 0,
		})
	}
	slices.SortStableFunc(s.Decided, func(a, b decided) int { return cmp.Compare(a.At, b.At) })
}

// bearable limits how long single rows fail. All such faults together end before a row can spend its attempts on
// them. While the probe passes, the row would rightly be exhausted.
func (s *schedule) bearable(wish time.Duration) time.Duration {
	shortest := longestRest
	for _, text := range s.Rests {
		if rest, err := time.ParseDuration(text); err == nil {
			shortest = min(shortest, rest)
		}
	}
	var all time.Duration
	for range s.Attempts {
		all += min(shortest, longestRest)
		shortest *= 2
	}
	wish = max(min(wish, all*9/10-s.borne), time.Millisecond)
	s.borne += wish
	return wish
}

func (s *schedule) settings(d dice) {
	s.Attempts = 5
	s.Settings = []string{
		"DOCKET_KAFKA_BROKERS=localhost:9092",
		"DOCKET_DATABASE_URL=postgres://docket:" + inPassword + "@db:5432/docket?sslmode=disable",
		"DOCKET_KAFKA_SESSION_TIMEOUT=6s", "DOCKET_KAFKA_REBALANCE_TIMEOUT=20s", "DOCKET_SHUTDOWN_TIMEOUT=" + one(d, "1s", "3s"),
		"DOCKET_STORE_TIMEOUT=" + one(d, "1s", "2s"), "DOCKET_PUBLISH_TIMEOUT=" + one(d, "500ms", "1s", "2s"),
		"DOCKET_RETRY_PAUSES=" + one(d, "1s,2s", "100ms,200ms", "500ms"),
		"DOCKET_PROBE_INTERVAL=" + one(d, "200ms", "500ms", "1s"),
		"DOCKET_PARK_BATCHES=" + one(d, "0", "1", "3", "3"),
		"DOCKET_BATCH_MAX_RECORDS=" + one(d, "1", "5", "20", "100"),
		"DOCKET_BATCH_MAX_WAIT=" + one(d, "1ms", "50ms", "200ms"),
		"DOCKET_BATCH_MAX_BYTES=64KiB", "DOCKET_SPOOL_MAX_BYTES=1MiB", "DOCKET_PARTITIONS_AHEAD=0", // the model has no DDL
		fmt.Sprintf("DOCKET_MAX_RECORD_BYTES=%dB", maxRecordBytes),
		"DOCKET_PARKING_MAX_BACKOFF=" + longestRest.String(),
		fmt.Sprintf("DOCKET_PARKING_MAX_ATTEMPTS=%d", s.Attempts),
		"DOCKET_DESK_LEASE=" + one(d, "3s", "10s", "1m"), "DOCKET_DESK_MAX_ATTEMPTS=" + one(d, "1", "2", "3"),
		"DOCKET_DESK_RELAY_INTERVAL=" + one(d, "50ms", "500ms"), "DOCKET_DESK_RELAY_BATCH=" + one(d, "1", "3", "50"), "DOCKET_DESK_RELAY_TRIES=" + one(d, "2", "5"),
		"DOCKET_DESK_RETRY_FIRST=" + one(d, "500ms", "2s"), "DOCKET_DESK_RETRY_INTERVAL=" + one(d, "1s", "3s"),
		"DOCKET_DESK_RETRY_KINDS=" + one(d, "", "data", "conflict", "conflict,data"),
	}
	if s.Seed%3 == 1 {
		s.MaxEntered = 3 + int(s.Seed%4)
	}
	s.Settings = append(s.Settings, fmt.Sprintf("DOCKET_DESK_MAX_ENTERED=%d", s.MaxEntered))
	if s.Seed%2 == 1 {
		s.Settings = append(s.Settings, "DOCKET_HEADER_KEY="+inHeaderKey)
	}
}

// simHour is the hour of the growth limit.
const simHour = 500 * time.Millisecond

// longestRest is the longest pause of a parked record.
const longestRest = 4 * time.Second

// maxRecordBytes limits an inflated record.
const maxRecordBytes = 16 << 10

// arrivals spreads the records over time, in bursts.
func (s *schedule) arrivals(d dice) {
	n := 20 + d.IntN(131)
	if d.IntN(3) > 0 {
		n = 20 + d.IntN(40)
	}
	first, at := d.IntN(len(pool())), time.Duration(0)
	for len(s.Arrivals) < n {
		at += d.between(0, 2*time.Second)
		if at > 12*time.Second {
			at = 12 * time.Second
		}
		for range min(1+d.IntN(25), n-len(s.Arrivals)) {
			a := arrival{At: at, Record: (first + len(s.Arrivals)) % len(pool()), Partition: int32(d.IntN(int(s.Partitions)))}
			if k := len(s.Arrivals); k > 0 && d.IntN(12) == 0 { // again, or with another payload
				a.Record, a.Twist = s.Arrivals[d.IntN(k)].Record, one(d, asIs, contrary)
			}
			s.Arrivals = append(s.Arrivals, a)
		}
	}
}
