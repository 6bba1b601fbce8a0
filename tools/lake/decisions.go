package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"docket/internal/history/archive"
	"docket/sample"
)

// users is how many people have each name of the sample.
const users = 5_000

// Places in a template that each decision fills. They are of Unicode's private use, so no sample has them.
const (
	placeID     = "\uE000"
	placeTime   = "\uE001"
	placeReqID  = "\uE002"
	placeUser   = "\uE003"
	placeTimer  = "\uE004"
	placeClient = "\uE005"
	allPlaces   = placeID + placeTime + placeReqID + placeUser + placeTimer + placeClient
)

// template is a decision of the sample, as text between places.
type template struct {
	texts  []string // one more than places
	places []string
	// Columns in the form of an archive's line.
	path, allowed, service, opaID, opaVersion, labels string
	denies                                            bool // allowed is false
}

// templates makes them of the sample, once. A decision with a number that Postgres would write out is left out.
var templates = sync.OnceValues(readTemplates)

// regions come before the paths of the sample, so that more than ten rules deny.
var regions = []string{"", "apac/", "eu/", "us/"}

func readTemplates() ([]template, error) {
	var all []template
	for _, log := range sample.DecisionLogs() {
		for _, region := range regions {
			d := json.NewDecoder(bytes.NewReader(log))
			d.UseNumber()
			var payload map[string]any
			if err := d.Decode(&payload); err != nil {
				return nil, fmt.Errorf("read the sample: %w", err)
			}
			payload["path"] = region + payload["path"].(string)
			if t := templateOf(payload); !t.hasExponent() {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

func templateOf(payload map[string]any) template {
	t := template{path: string(quoted(payload["path"].(string))), labels: string(jsonb(nil, payload["labels"]))}
	service, _, _ := strings.Cut(payload["path"].(string), "/")
	t.service = string(quoted(service))
	labels := payload["labels"].(map[string]any)
	t.opaID, t.opaVersion = string(quoted(labels["id"].(string))), string(quoted(labels["version"].(string)))
	result := payload["result"]
	if object, ok := result.(map[string]any); ok {
		result = object["allow"]
	}
	if allowed, ok := result.(bool); ok {
		t.allowed, t.denies = strconv.FormatBool(allowed), !allowed
	}
	payload["decision_id"], payload["timestamp"], payload["requested_by"] = placeID, placeTime, placeClient
	payload["req_id"] = json.Number(placeReqID)
	if input, ok := payload["input"].(map[string]any); ok {
		if user, ok := input["user"].(string); ok {
			input["user"] = user + placeUser
		}
	}
	if metrics, ok := payload["metrics"].(map[string]any); ok {
		for name := range metrics {
			if strings.HasPrefix(name, "timer_") {
				metrics[name] = json.Number(placeTimer)
			}
		}
	}
	text := string(jsonb(nil, payload))
	for {
		i := strings.IndexAny(text, allPlaces)
		if i < 0 {
			t.texts = append(t.texts, text)
			return t
		}
		t.texts, t.places = append(t.texts, text[:i]), append(t.places, text[i:i+len(placeID)])
		text = text[i+len(placeID):]
	}
}

// hasExponent reports whether a number is written with an exponent. It also finds such text in a string.
func (t *template) hasExponent() bool {
	for _, text := range t.texts {
		for i := 1; i+1 < len(text); i++ {
			if text[i]|0x20 == 'e' && isDigit(text[i-1]) && (isDigit(text[i+1]) || text[i+1] == '+' || text[i+1] == '-') {
				return true
			}
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// decisions makes the rows of days, as the lines that Postgres would give. The same seed makes the same rows.
type decisions struct {
	seed      uint64
	first     archive.Day
	days      int
	rows      int64 // of all days
	templates []template
	plant     plant
}

// columns are those of decision_logs that the rows have.
var columns = []archive.Column{
	{Name: "decision_id", Type: "text"}, {Name: "ts", Type: "timestamp with time zone"}, {Name: "path", Type: "text"}, {Name: "allowed", Type: "boolean"},
	{Name: "requested_by", Type: "text"}, {Name: "req_id", Type: "bigint"}, {Name: "opa_id", Type: "text"}, {Name: "opa_version", Type: "text"},
	{Name: "service", Type: "text"}, {Name: "labels", Type: "jsonb"}, {Name: "bundles", Type: "jsonb"}, {Name: "raw", Type: "jsonb"},
	{Name: "source_topic", Type: "text"}, {Name: "source_partition", Type: "integer"}, {Name: "source_offset", Type: "bigint"},
	{Name: "source_index", Type: "integer"}, {Name: "stored_at", Type: "timestamp with time zone"}, {Name: "raw_bytes", Type: "bytea"},
	{Name: "unfaithful", Type: "text[]"}, {Name: "edited_audit_id", Type: "bigint"}, {Name: "uploaded_by", Type: "text"}, {Name: "raw_sha256", Type: "bytea"},
}

// day returns the n-th day.
func (d *decisions) day(n int) archive.Day { return archive.Day{Time: d.first.AddDate(0, 0, n)} }

// number returns the place of a day.
func (d *decisions) number(day archive.Day) int { return int(day.Sub(d.first.Time).Hours()) / 24 }

// count returns the rows of the n-th day.
func (d *decisions) count(n int) int64 {
	rows, days := d.rows, int64(d.days)
	return rows*int64(n+1)/days - rows*int64(n)/days
}

// lines passes the rows of a day, in the order of ts and decision_id. A line is valid until each returns.
func (d *decisions) lines(day archive.Day, each func(line []byte) error) error {
	n := d.number(day)
	r := &row{rng: rand.New(rand.NewPCG(d.seed, uint64(n)))}
	count := d.count(n)
	offset := d.rows * int64(n) / int64(d.days)
	planted := d.plant // its own in each reading
	for i := range count {
		r.next(day.UnixMicro(), i, count)
		t := &d.templates[r.rng.IntN(len(d.templates))]
		line := r.line(t, offset+i)
		if planted.hits(n, i, t) {
			if line = planted.alter(line); line == nil {
				continue
			}
		}
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// row is a decision that is being made.
type row struct {
	rng    *rand.Rand
	micros int64
	tied   bool // it has the time of the one before
	id     []byte
	client []byte
	buf    []byte
}

const dayMicros = int64(24 * time.Hour / time.Microsecond)

// next moves on in time. Some rows have the time of the one before, and a greater id.
func (r *row) next(start, i, count int64) {
	slot := max(dayMicros/count, 1)
	if r.tied = i > 0 && !r.tied && r.rng.IntN(64) == 0; r.tied {
		before := string(r.id)
		for r.uuid(); string(r.id) <= before; {
			r.uuid()
		}
	} else {
		r.micros = start + i*dayMicros/count + r.rng.Int64N(slot)
		r.uuid()
	}
	r.client = fmt.Appendf(r.client[:0], "10.%d.%d.%d:%d", r.rng.IntN(4), r.rng.IntN(256), r.rng.IntN(256), 1024+r.rng.IntN(60000))
}

// uuid makes a random one, version 4.
func (r *row) uuid() {
	var u [16]byte
	binary.LittleEndian.PutUint64(u[:8], r.rng.Uint64())
	binary.LittleEndian.PutUint64(u[8:], r.rng.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	r.id = r.id[:0]
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			r.id = append(r.id, '-')
		}
		r.id = hex.AppendEncode(r.id, part)
	}
}

// line returns the row's line.
func (r *row) line(t *template, offset int64) []byte {
	b := append(r.buf[:0], `{"decision_id":"`...)
	b = append(append(b, r.id...), `","ts":"`...)
	b = time.UnixMicro(r.micros).UTC().AppendFormat(b, "2006-01-02T15:04:05.999999")
	b = append(append(b, `+00:00","path":`...), t.path...)
	if t.allowed != "" {
		b = append(append(b, `,"allowed":`...), t.allowed...)
	}
	b = append(append(b, `,"requested_by":"`...), r.client...)
	b = strconv.AppendInt(append(b, `","req_id":`...), offset+1, 10)
	b = append(append(b, `,"opa_id":`...), t.opaID...)
	b = append(append(b, `,"opa_version":`...), t.opaVersion...)
	b = append(append(b, `,"service":`...), t.service...)
	b = append(append(b, `,"labels":`...), t.labels...)
	b = r.payload(append(b, `,"raw":`...), t, offset+1)
	b = strconv.AppendInt(append(b, `,"source_topic":"decision-logs","source_partition":`...), offset%12, 10)
	b = strconv.AppendInt(append(b, `,"source_offset":`...), offset/12, 10)
	b = append(b, `,"source_index":0,"stored_at":"`...)
	b = time.UnixMicro(r.micros-r.micros%500_000+1_700_000).UTC().AppendFormat(b, "2006-01-02T15:04:05.999999")
	b = append(b, `+00:00","raw_sha256":"\\x`...)
	var sum [32]byte
	for i := 0; i < len(sum); i += 8 {
		binary.LittleEndian.PutUint64(sum[i:], r.rng.Uint64())
	}
	r.buf = append(hex.AppendEncode(b, sum[:]), `"}`...)
	return r.buf
}

// payload appends the payload.
func (r *row) payload(b []byte, t *template, reqID int64) []byte {
	for i, place := range t.places {
		b = append(b, t.texts[i]...)
		switch place {
		case placeID:
			b = append(b, r.id...)
		case placeTime:
			b = time.UnixMicro(r.micros).Add(time.Duration(r.rng.IntN(1000))).UTC().AppendFormat(b, time.RFC3339Nano)
		case placeReqID:
			b = strconv.AppendInt(b, reqID, 10)
		case placeUser:
			b = strconv.AppendInt(append(b, '-'), int64(r.rng.IntN(users)), 10)
		case placeTimer:
			b = strconv.AppendInt(b, int64(10_000+r.rng.IntN(900_000)), 10)
		case placeClient:
			b = append(b, r.client...)
		}
	}
	return append(b, t.texts[len(t.places)]...)
}
