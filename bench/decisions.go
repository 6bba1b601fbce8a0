package bench

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// Subjects is how many different keys the decisions have.
const Subjects = 50_000

// Decisions makes decision logs by seed, shaped like those in the folder sample: the same members, the larger half of
// the results a boolean, the others an object, a few escaped quotes. About 650 bytes each.
type Decisions struct {
	rng *rand.Rand
	at  time.Time
	n   int64
	pad int

	steady bool
}

// NewDecisions begins with the first decision of a seed, made at that time; every one is a bit later than the one before.
func NewDecisions(seed uint64, at time.Time) *Decisions {
	return &Decisions{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), at: at.UTC()}
}

// Padded makes the decisions about so many bytes longer, by a text that does not compress much.
func (d *Decisions) Padded(bytes int) *Decisions {
	d.pad = bytes
	return d
}

// Steady makes the answer to a subject on a path the same each time, but for one decision of a hundred. Without it each answer is by
// chance, one of four denied.
func (d *Decisions) Steady() *Decisions {
	d.steady = true
	return d
}

// Decision is one decision log and its key in the topic.
type Decision struct {
	ID         string
	Key, Value []byte
}

// Next makes one more.
func (d *Decisions) Next() Decision {
	d.n++
	d.at = d.at.Add(time.Duration(1+d.rng.IntN(50)) * time.Microsecond)
	subject := fmt.Sprintf("user%05d", d.rng.IntN(Subjects))
	id := d.uuid()
	return Decision{ID: id, Key: []byte(subject), Value: d.value(id, subject)}
}

var (
	methods = []string{"GET", "POST", "PUT", "DELETE"}
	nouns   = []string{"salary", "orders", "invoices", "reports", "tickets", "profiles"}
	teams   = []string{"finance", "checkout", "support", "warehouse"}
	asked   = []string{`list of \"open\" items`, "everything since monday", "what changed", "only mine", "by region and month"}
)

func pick(rng *rand.Rand, of []string) string { return of[rng.IntN(len(of))] }

func (d *Decisions) value(id, subject string) []byte {
	rng := d.rng
	team, noun, method := pick(rng, teams), pick(rng, nouns), pick(rng, methods)
	b := make([]byte, 0, 768+d.pad)
	b = append(b, `{"labels":{"app":"`+team+`","id":"5bf7d126-339c-49a0-aabe-d960791bad7f","region":"kr-1","version":"1.22.0"},"decision_id":"`...)
	b = append(b, id...)
	b = append(b, `","path":"http/`+team+`/authz/allow","input":{"method":"`+method+`","path":["`+team+`","`+noun+`","`+subject+`"],"user":"`+subject+`","roles":["`+team+`-reader"`...)
	if rng.IntN(2) == 0 {
		b = append(b, `,"`+team+`-writer"`...)
	}
	b = append(b, `],"query":{"q":"`+pick(rng, asked)+`","page":`...)
	b = strconv.AppendInt(b, int64(rng.IntN(500)), 10)
	b = append(b, '}')
	if d.pad > 0 {
		b = append(b, `,"document":"`...)
		b = d.text(b, d.pad)
		b = append(b, '"')
	}
	b = append(b, `},"result":`...)
	allows, plain := rng.IntN(4) > 0, rng.IntN(3) > 0
	if d.steady {
		of := fnv.New32a()
		_, _ = of.Write([]byte(subject + team)) // a hash never fails
		usual := of.Sum32()
		allows, plain = (usual%4 > 0) != (rng.IntN(100) == 0), usual%3 > 0
		method, noun = methods[usual%4], nouns[usual%6]
	}
	allowed := strconv.FormatBool(allows)
	if plain {
		b = append(b, allowed...)
	} else {
		b = append(b, `{"allow":`+allowed+`,"reasons":["`+method+` of `+noun+` by role","owner of the record"]}`...)
	}
	b = fmt.Appendf(b, `,"requested_by":"10.%d.%d.%d:%d","timestamp":"`, rng.IntN(256), rng.IntN(256), rng.IntN(256), 1024+rng.IntN(60000))
	b = d.at.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","metrics":{"counter_server_query_cache_hit":1,"timer_rego_external_resolve_ns":`...)
	b = strconv.AppendInt(b, int64(100+rng.IntN(900)), 10)
	b = append(b, `,"timer_rego_input_parse_ns":`...)
	b = strconv.AppendInt(b, int64(10000+rng.IntN(200000)), 10)
	b = append(b, `,"timer_rego_query_eval_ns":`...)
	b = strconv.AppendInt(b, int64(20000+rng.IntN(400000)), 10)
	b = append(b, `,"timer_server_handler_ns":`...)
	b = strconv.AppendInt(b, int64(90000+rng.IntN(900000)), 10)
	b = append(b, `},"req_id":`...)
	b = strconv.AppendInt(b, d.n, 10)
	return append(b, '}')
}

// text appends so many letters and digits.
func (d *Decisions) text(b []byte, n int) []byte {
	var word [8]byte
	for end := len(b) + n; len(b) < end; {
		binary.LittleEndian.PutUint64(word[:], d.rng.Uint64())
		b = hex.AppendEncode(b, word[:])
	}
	return b
}

// uuid makes a random one, version 4.
func (d *Decisions) uuid() string {
	var u [16]byte
	binary.LittleEndian.PutUint64(u[:8], d.rng.Uint64())
	binary.LittleEndian.PutUint64(u[8:], d.rng.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}
