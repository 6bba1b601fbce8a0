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

// RefusedMember is a member of a decision that makes a table with [RefuseSQL] refuse it.
const RefusedMember = "docket_refuse"

// RefuseSQL is the unforeseen fault: a constraint of the table that no decoder knows of. Records with [RefusedMember]
// then fail with SQLSTATE 23514.
const RefuseSQL = `ALTER TABLE decision_logs ADD CONSTRAINT docket_demo_refuses CHECK (NOT raw ? '` + RefusedMember + `')`

// Config says what to make. The same Config makes the same records, byte for byte.
type Config struct {
	Records        int       // Kafka records to make; at least [MinRecords]
	Seed           uint64    // of everything that is drawn
	Samples        [][]byte  // decision logs, one JSON object each
	Start          time.Time // timestamp of the first decision; each later one is a millisecond on
	MaxRecordBytes int64     // what the reader is set to: one of the faults is a record larger than that
	FaultEvery     int       // a planted record in so many; 0: 60
}

// MinRecords is the least number of records that leaves room for every planted kind.
const MinRecords = 200

// Decision is one decision as it was produced and what has to become of it.
type Decision struct {
	ID   string    // empty where it cannot be read as a decision
	Time time.Time // in UTC, cut to microseconds
	Body []byte    // its exact bytes inside the record, uncompressed
	Code string    // the failure code that it has to be dead-lettered with; empty: a row, or a duplicate of one
}

// Record is a Kafka record to produce. It carries at least one decision; one that cannot be read counts as one.
type Record struct {
	Key, Value []byte
	Headers    []kgo.RecordHeader
	Decisions  []Decision
	Planted    string // name of the planted kind, empty for an ordinary record
}

// Generator makes records. It belongs to one goroutine.
type Generator struct {
	cfg      Config
	rng      *rand.Rand
	samples  []sample
	made     int
	decision int
	plan     map[int]kind // what is planted at which record
	past     []Record     // ordinary records of one decision, to repeat or to contradict; each is used once
	gz       *gzip.Writer
	huge     []byte
}

// New prepares a generator. It fails on samples that are not decision logs and on too few records.
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
// that there is something to repeat.
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

// Next makes the next record; false when all are made.
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

// ordinary is a record of good decisions, of one of the shapes in which OPA and its Kafka sink write.
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

// decide makes a decision of a sample with members put before all others and the code that it has to fail with.
func (g *Generator) decide(front, code string) Decision {
	id, at := g.identity()
	body := g.samples[g.rng.IntN(len(g.samples))].with(id, at, front)
	return Decision{ID: id, Time: at.Truncate(time.Microsecond), Body: body, Code: code}
}

// identity is an id and a time that no other decision has.
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

// single is a record whose value is one decision. Some come with headers, and some of those with names that Docket
// uses for its own: these are not to be believed.
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
	// A bytes.Buffer takes everything: neither call has a way to fail.
	_, _ = g.gz.Write(b)
	_ = g.gz.Close()
	return buf.Bytes()
}

// forwarded is the value that decision i of the record has when it is forwarded.
func (r *Record) forwarded(i int) []byte {
	if len(r.Decisions) == 1 {
		return r.Value
	}
	return r.Decisions[i].Body
}
