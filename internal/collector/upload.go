package collector

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/collector/routing"
	"docket/internal/record/decision"
	"docket/internal/service/telemetry"
)

// upload is one upload under way.
type upload struct {
	collector *Collector
	share
	client          string // name of the token or certificate that it came with
	sender          string // of the place and the shares, as from returns it
	right           Right
	bytes, inflated int64
	body            []byte // as it came
	plain           []byte // after gunzip; body itself where that was plain
	zipped          bool
	tools           *tools
	update          *statusUpdate // it is one, and has no decision
	parts           []decision.Part
	whole           bool // nobody else looks any more at what the records refer to
	trace           Trace
	headers         []kgo.RecordHeader // of every record: its trace, and who uploaded it
	topic, dead     int                // decisions that were acknowledged, topic in all lanes
}

// tools are kept from one upload to the next.
type tools struct {
	decoder  decision.Decoder
	records  []kgo.Record
	sending  []*kgo.Record
	outgoing []outgoing
	keys     []byte
	paid     routing.Paid
}

var allTools = sync.Pool{New: func() any { return new(tools) }}

const (
	// eachDecision is what a decision takes beside its bytes while it is decoded and published: its Part, its record here,
	// in the publisher and in the client, and its key.
	eachDecision = 1536
	// eachPart is what room for one decision more takes, a [decision.Part].
	eachPart = 368
	// eachNode is what a key or a brace takes while a decision of very many is decoded.
	eachNode = 24
	// smallDecision is the size from which on there is room for all decisions of an upload before they are decoded.
	smallDecision = 512
	// eachLetter is what a dead letter takes on top: headers, twice.
	eachLetter = 3 << 10
	// mostTools is how many decisions' tools are kept for the next upload.
	mostTools = 4 << 10
)

// begun waits for the first byte of the body.
func (u *upload) begun(r *http.Request) *refusal {
	var first [1]byte
	n, err := io.ReadFull(r.Body, first[:])
	if err != nil && !errors.Is(err, io.EOF) {
		return unread(err)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), r.Body), r.Body}
	return nil
}

// namePrefix tells a name from an address.
const namePrefix = "name "

// from is who uploads: the name of the token or certificate, else the address.
func (u *upload) from(r *http.Request) string {
	if u.client != "" {
		return namePrefix + u.client
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// read reads, inflates and decodes the upload.
func (u *upload) read(w http.ResponseWriter, r *http.Request) (refused *refusal) {
	c := u.collector
	defer func() { u.whole = refused != nil || u.update != nil }() // such an upload was never published
	u.body, refused = readBody(r.Body, &u.share, c.cfg.UploadBytes)
	u.bytes = int64(len(u.body))
	c.metrics.bytes.Add(float64(u.bytes))
	if refused != nil {
		return refused
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the next request on this connection has its own time
	u.plain = u.body
	if decision.IsGzip(u.body) {
		u.zipped = true
		u.plain, refused = inflate(u.body, &u.share, c.cfg.InflatedBytes)
		if refused == nil {
			u.drop(u.body)
			u.body = nil
		}
	} else if u.bytes > c.cfg.InflatedBytes {
		refused = refuse(reasonInflatedBytes, 0)
	}
	u.inflated = int64(len(u.plain))
	c.metrics.inflated.Add(float64(u.inflated))
	if refused != nil {
		return refused
	}
	if updatePath(r.URL.Path) {
		if s, ok := parseUpdate(u.plain); ok {
			u.update = &s
			return nil
		}
	}
	counted, loose, refused := u.reserve()
	if refused != nil {
		return refused
	}
	u.tools = allTools.Get().(*tools)
	// Room for smaller ones is made as they come, and there is memory for that.
	u.tools.decoder.Begin(min(1+len(u.plain)/smallDecision, counted.decisions, decision.MaxDecisions))
	record, unread := u.tools.decoder.Decode(u.plain, max(u.inflated, 1))
	if unread != nil {
		return unreadable(unread)
	}
	u.parts = record.Parts
	u.allow()
	if loose {
		left := outlay{len(u.parts), counted.nodes}.bytes() + eachPart*int64(u.tools.decoder.Room()-len(u.parts))
		u.give(max(0, counted.bytes()-left))
	}
	return nil
}

// allow has what the client may not upload be a dead letter.
func (u *upload) allow() {
	denied, field := 0, ""
	for i := range u.parts {
		if part := &u.parts[i]; part.Err == nil {
			if part.Err = u.right.refuses(&part.Log); part.Err != nil {
				denied++
				field = part.Err.Field
			}
		}
	}
	if denied == 0 {
		return
	}
	u.collector.metrics.denied.Add(float64(denied))
	u.collector.log.Warn().Str(telemetry.KeyName, u.client).Int("decisions", denied).Str("field", field).
		Str(telemetry.KeyHint, "if this client may upload them, change DOCKET_COLLECTOR_CLIENTS_FILE and retry the dead letters not_allowed").
		Msg("decisions not allowed")
}

// reserve takes the memory that decoding and publishing may need at most. While half of the budget is free, it takes a
// loose bound, which is found quickly. The excess is given back once the decisions were counted.
func (u *upload) reserve() (counted outlay, loose bool, refused *refusal) {
	if counted = looseOutlay(u.plain); counted.bytes() <= u.most/2-u.used.Load() && u.try(counted.bytes()) {
		return counted, true, nil
	}
	counted = outlayOf(u.plain)
	return counted, false, u.take(counted.bytes())
}

// end gives everything back. Memory that a publisher may still look at is left to the garbage collector.
func (u *upload) end() {
	if t := u.tools; t != nil && u.whole {
		t.decoder.Begin(0)
		clear(t.records)
		clear(t.sending)
		clear(t.outgoing)
		t.paid.Reset()
		if cap(t.records) <= mostTools && cap(t.keys) <= mostKept {
			allTools.Put(t)
		}
	}
	if u.whole {
		if u.zipped {
			u.drop(u.plain)
		}
		u.drop(u.body)
	}
	u.give(u.held)
}

// ended tells what became of it.
func (u *upload) ended(status int, why reason) {
	u.trace.End(Ended{Status: status, Reason: string(why), Topic: u.topic, Dead: u.dead, Bytes: u.bytes, Inflated: u.inflated})
}
