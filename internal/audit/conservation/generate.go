package conservation

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kgo"
)

// RefusedMember is a member of a decision that a table with [RefuseSQL] refuses.
const RefusedMember = "docket_refuse"

// RefuseSQL adds a constraint that no decoder knows. Records with [RefusedMember] then fail with SQLSTATE 23514.
const RefuseSQL = `ALTER TABLE decision_logs ADD CONSTRAINT docket_demo_refuses CHECK (NOT raw ? '` + RefusedMember + `')`

// Config says which records to make. Equal Configs make equal records, byte for byte.
type Config struct {
	Records        int       // Kafka records to make; at least [MinRecords]
	Seed           uint64    // of all random choices
	Samples        [][]byte  // decision logs, one JSON object each
	Start          time.Time // timestamp of the first decision; each later one is a millisecond later
	MaxRecordBytes int64     // the reader's limit: one fault is a larger record
	FaultEvery     int       // one planted record in this many; 0: 60
}

// MinRecords is the least number of records with room for every planted kind.
const MinRecords = 200

// Decision is a produced decision and its expected result.
type Decision struct {
	ID   string    // empty if it cannot be read as a decision
	Time time.Time // in UTC, cut to microseconds
	Body []byte    // its exact bytes inside the record, uncompressed
	Code string    // the expected failure code; empty: a row, or a duplicate of one
}

// Record is a Kafka record to produce. It has at least one decision; an unreadable one counts as one.
type Record struct {
	Key, Value []byte
	Headers    []kgo.RecordHeader
	Decisions  []Decision
	Planted    string // name of the planted kind, empty for an ordinary record
	// Reached is when the broker had it, or later; [Produced.Acknowledged] sets it if it is zero.
	Reached time.Time
}

// Generator makes records. It belongs to one goroutine.
type Generator struct {
	cfg      Config
	rng      *rand.Rand
	samples  []sample
	made     int
	decision int
	plan     map[int]kind // the planted kind by record
	past     []Record     // ordinary records of one decision, to repeat or to contradict; each is used once
	gz       *gzip.Writer
	huge     []byte
}

// New makes a generator. It fails if a sample is not a decision log, and for too few records.
func New(cfg Config) (*Generator, error) {
	if cfg.Records < MinRecords {
		return nil, fmt.Errorf("%d records leave no room for every kind of fault, at least %d do", cfg.Records, MinRecords)
	}
	if cfg.MaxRecordBytes <= 0 {
		return nil, errors.New("MaxRecordBytes is not set")
	}
	samples, err := parseSamples(cfg.Samples)
	if err != nil {
		return nil, err
	}
	gz, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("make a gzip writer: %w", err)
	}
	if cfg.FaultEvery <= 0 {
		cfg.FaultEvery = 60
	}
	g := &Generator{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6f7061)), samples: samples, gz: gz}
	g.plant()
	return g, nil
}

// plant spreads every kind of fault evenly over the records, each at least once. The first records are ordinary, so
// that later ones can repeat them.
func (g *Generator) plant() {
	all := kinds()
	n := max(len(all), g.cfg.Records/g.cfg.FaultEvery)
	room := g.cfg.Records - g.cfg.Records/10
	step := room / n
	g.plan = make(map[int]kind, n)
	for i := range n {
		g.plan[g.cfg.Records/10+i*step+g.rng.IntN(step)] = all[i%len(all)]
	}
}

// Next makes the next record; false after the last.
func (g *Generator) Next() (Record, bool) {
	if g.made == g.cfg.Records {
		return Record{}, false
	}
	k, planted := g.plan[g.made]
	g.made++
	if planted {
		r := k.make(g)
		r.Planted = k.name
		return r, true
	}
	return g.ordinary(), true
}

// ordinary makes a record of good decisions, in one of the shapes that OPA and its Kafka sink write.
func (g *Generator) ordinary() Record {
	shape := g.rng.Float64()
	switch {
	case shape < 0.86:
		r := g.single(g.good())
		if len(g.past) < 64 {
			g.past = append(g.past, r)
		}
		return r
	case shape < 0.89:
		r := g.single(g.good())
		r.Value = g.compress(r.Value)
		return r
	case shape < 0.92:
		return g.array(g.several()...)
	case shape < 0.95:
		return g.compressed(g.array(g.several()...))
	case shape < 0.975:
		return g.lines(g.several()...)
	default:
		return g.compressed(g.lines(g.several()...))
	}
}

func (g *Generator) several() []Decision {
	ds := make([]Decision, 2+g.rng.IntN(5))
	for i := range ds {
		ds[i] = g.good()
	}
	return ds
}

func (g *Generator) good() Decision { return g.decide("", "") }

// decide makes a decision of a sample. front has members to put before all others, code is the expected failure code.
func (g *Generator) decide(front, code string) Decision {
	id, at := g.identity()
	body := g.samples[g.rng.IntN(len(g.samples))].with(id, at, front)
	return Decision{ID: id, Time: at.Truncate(time.Microsecond), Body: body, Code: code}
}

// identity returns an id and a time that no other decision has.
func (g *Generator) identity() (string, time.Time) {
	var b [16]byte
	for i := 0; i < len(b); i += 8 {
		v := g.rng.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	at := g.cfg.Start.UTC().Add(time.Duration(g.decision)*time.Millisecond + time.Duration(g.rng.IntN(int(time.Millisecond))))
	g.decision++
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), at
}

// single makes a record whose value is one decision. Some have headers, and some of these have Docket's names, which
// must not be trusted.
func (g *Generator) single(d Decision) Record {
	r := Record{Key: []byte(d.ID), Value: d.Body, Decisions: []Decision{d}}
	switch g.rng.IntN(20) {
	case 0:
		r.Headers = []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/json")}}
	case 1:
		r.Headers = []kgo.RecordHeader{{Key: "x-retry-attempt", Value: []byte("99")}, {Key: "x-original-offset", Value: []byte("1")}}
	}
	return r
}

func (g *Generator) array(ds ...Decision) Record {
	return joined(ds, "[", ",", "]")
}

func (g *Generator) lines(ds ...Decision) Record {
	return joined(ds, "", "\n", "\n")
}

func joined(ds []Decision, open, between, end string) Record {
	bodies := make([][]byte, len(ds))
	for i, d := range ds {
		bodies[i] = d.Body
	}
	value := append([]byte(open), bytes.Join(bodies, []byte(between))...)
	return Record{Key: []byte(ds[0].ID), Value: append(value, end...), Decisions: ds}
}

func (g *Generator) compressed(r Record) Record {
	r.Value = g.compress(r.Value)
	return r
}

func (g *Generator) compress(b []byte) []byte {
	var buf bytes.Buffer
	g.gz.Reset(&buf)
	// Writing to a bytes.Buffer cannot fail.
	_, _ = g.gz.Write(b)
	_ = g.gz.Close()
	return buf.Bytes()
}

// forwarded returns the forwarded value of the record's decision i.
func (r *Record) forwarded(i int) []byte {
	if len(r.Decisions) == 1 {
		return r.Value
	}
	return r.Decisions[i].Body
}
