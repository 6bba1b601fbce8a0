package collector

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"docket/internal/record/decision"
)

// reason says why an upload was refused; it is a label of a metric and a part of the answer.
type reason string

const (
	reasonMethod        reason = "method"
	reasonCrossSite     reason = "cross_site"
	reasonCredentials   reason = "credentials"
	reasonClient        reason = "client"
	reasonDraining      reason = "draining"
	reasonContentType   reason = "content_type"
	reasonEncoding      reason = "encoding"
	reasonUploads       reason = "uploads"
	reasonMemory        reason = "memory"
	reasonMemorySize    reason = "memory_size"
	reasonUploadBytes   reason = "upload_bytes"
	reasonInflatedBytes reason = "inflated_bytes"
	reasonDecisions     reason = "decisions"
	reasonDecisionBytes reason = "decision_bytes"
	reasonBodyTimeout   reason = "body_timeout"
	reasonBodyBroken    reason = "body_broken"
	reasonGzip          reason = "gzip"
	reasonEmpty                = reason(decision.Empty)
	reasonSyntax               = reason(decision.Syntax)
	reasonKafka         reason = "kafka"
	reasonPanic         reason = "panic"
)

// fate is what the sender does with an upload that was refused.
type fate uint8

const (
	later fate = iota // it comes again, and may be taken then
	never             // it comes again, for ever, until somebody changes something
)

// refusals are all the ways to refuse an upload.
var refusals = map[reason]struct {
	status int
	fate   fate
	detail string // the event, and the remedy
}{
	reasonMethod:        {http.StatusMethodNotAllowed, never, "decision logs are uploaded by POST"},
	reasonCrossSite:     {http.StatusForbidden, never, "a page of another site sent this through a browser; decision logs come from OPA"},
	reasonCredentials:   {http.StatusUnauthorized, never, "send a bearer token or a client certificate that is known here"},
	reasonClient:        {http.StatusForbidden, never, "this client is not in DOCKET_COLLECTOR_CLIENTS_FILE"},
	reasonDraining:      {http.StatusServiceUnavailable, later, "this collector is stopping; send the upload again"},
	reasonContentType:   {http.StatusUnsupportedMediaType, never, "send Content-Type: application/json, as OPA does; application/x-ndjson is taken, too"},
	reasonEncoding:      {http.StatusUnsupportedMediaType, never, "send the upload plain or with Content-Encoding: gzip"},
	reasonUploads:       {http.StatusTooManyRequests, later, "the limit of concurrent uploads, DOCKET_COLLECTOR_UPLOADS, is reached; send the upload again"},
	reasonMemory:        {http.StatusTooManyRequests, later, "concurrent uploads use all of DOCKET_COLLECTOR_MEMORY, or the uploads of this client have a quarter of it while another client waits; send the upload again"},
	reasonMemorySize:    {http.StatusRequestEntityTooLarge, never, "the upload alone does not fit into DOCKET_COLLECTOR_MEMORY: raise it, or lower reporting.upload_size_limit_bytes of OPA's decision_logs"},
	reasonUploadBytes:   {http.StatusRequestEntityTooLarge, never, "the upload is larger than DOCKET_COLLECTOR_UPLOAD_BYTES: raise it, or lower reporting.upload_size_limit_bytes of OPA's decision_logs"},
	reasonInflatedBytes: {http.StatusRequestEntityTooLarge, never, "after gunzip the upload is larger than DOCKET_COLLECTOR_INFLATED_BYTES: raise it, or lower reporting.upload_size_limit_bytes of OPA's decision_logs"},
	reasonDecisions:     {http.StatusRequestEntityTooLarge, never, "the upload holds more than " + strconv.Itoa(decision.MaxDecisions) + " decisions: lower reporting.upload_size_limit_bytes of OPA's decision_logs"},
	reasonDecisionBytes: {http.StatusRequestEntityTooLarge, never, "a decision is too large for both topics, even after gzip: raise max.message.bytes of the topics, or remove large values by DOCKET_COLLECTOR_DROP"},
	reasonBodyTimeout:   {http.StatusRequestTimeout, later, "the body did not arrive within DOCKET_COLLECTOR_BODY_TIMEOUT"},
	reasonBodyBroken:    {http.StatusBadRequest, later, "the body is incomplete"},
	reasonGzip:          {http.StatusBadRequest, never, "the gzip data is corrupt: check the sender"},
	reasonEmpty:         {http.StatusBadRequest, never, "the upload has no decision: check the sender"},
	reasonSyntax:        {http.StatusBadRequest, never, "the upload is neither a JSON array of decisions nor one decision nor decisions on lines"},
	reasonKafka:         {http.StatusServiceUnavailable, later, "Kafka did not acknowledge every decision; send the upload again, duplicates are recognized"},
	reasonPanic:         {http.StatusInternalServerError, later, "the upload triggered a bug in the collector; see its log"},
}

// refusal is why an upload is not answered 2xx.
type refusal struct {
	reason reason
	offset int   // where the fault was seen, in bytes after gunzip
	cause  error // why Kafka did not take it
}

func refuse(why reason, offset int) *refusal { return &refusal{reason: why, offset: offset} }

// unreadable is what the decoder's word on a whole upload means.
func unreadable(r *decision.Refusal) *refusal {
	switch r.Reason {
	case decision.Empty:
		return refuse(reasonEmpty, r.Offset)
	case decision.TooLarge:
		return refuse(reasonDecisions, r.Offset) // bytes were counted before
	default:
		return refuse(reasonSyntax, r.Offset)
	}
}

// answer is the body of an answer that is not 2xx, after RFC 9457.
type answer struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Reason reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	Offset *int   `json:"offset,omitempty"` // in bytes after gunzip
}

// write answers. Nothing of what was sent is repeated.
func (r *refusal) write(w http.ResponseWriter, retryAfter time.Duration) {
	known := refusals[r.reason]
	a := answer{Type: "about:blank", Title: http.StatusText(known.status), Status: known.status, Reason: r.reason, Detail: known.detail}
	h := w.Header()
	switch r.reason {
	case reasonMethod:
		h.Set("Allow", http.MethodPost)
	case reasonCredentials:
		h.Set("Www-Authenticate", `Bearer realm="docket"`)
		a.Reason, a.Detail = "", ""
	case reasonBodyTimeout, reasonBodyBroken:
		h.Set("Connection", "close") // where the next request begins is not known
	case reasonSyntax, reasonGzip, reasonEmpty:
		a.Offset = &r.offset
	}
	if known.status == http.StatusTooManyRequests || known.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(retryAfter.Seconds())))))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(known.status)
	_ = json.NewEncoder(w).Encode(a) // a sender that hung up does not read it
}
