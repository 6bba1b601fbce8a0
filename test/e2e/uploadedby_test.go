//go:build integration

package e2e

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/testkit/testenv"
)

// TestUploadedBy_GoesWithTheRecord: the client that uploaded a decision is on its record, its dead letter and its retry. A
// writer to the source topic cannot name another client.
func TestUploadedBy_GoesWithTheRecord(t *testing.T) {
	t.Parallel()
	file, keys := headerKey(t)
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_HEADER_KEY_FILE="+file)...)
	s.exec(broken)
	uploads := freeAddr(t)
	awaitReady(t, s.collector(uploads))
	s.consumer()
	s.desk()
	uploaded := decisions("billing/refund", 1)[0]
	if status, body := upload(t, uploads, "["+uploaded+`,{"decision_id":"bad-time","timestamp":"yesterday"}]`, true); status/100 != 2 {
		t.Fatalf("the upload was answered %d %s", status, body)
	}
	s.put(&kgo.Record{Value: []byte(strings.Replace(uploaded, "billing/refund-0", "claimed", 1)), Headers: []kgo.RecordHeader{{Key: envelope.UploadedBy, Value: []byte("opa")}}})
	by := func(r *kgo.Record) string {
		for _, h := range r.Headers {
			if h.Key == envelope.UploadedBy {
				return string(h.Value)
			}
		}
		return ""
	}
	for _, r := range s.read(s.places.DLQTopic, 3) {
		want := "opa"
		if strings.Contains(string(r.Value), "claimed") {
			want = ""
		}
		if got := by(r); got != want || !keys.Prove(r) {
			t.Errorf("of dead letter %s it is said that %q uploaded it, want %q: %v", r.Value, got, want, r.Headers)
		}
	}
	s.groups(3)
	for _, l := range s.letters("--code", "23514") {
		shown := s.docket(nil, 0, "dlq", "show", l.ID, "--payload")
		if strings.Contains(shown, envelope.UploadedBy) != (l.DecisionID != "claimed") {
			t.Errorf("%s is shown as\n%s", l.DecisionID, shown)
		}
	}
	s.exec(mended)
	s.docket(nil, 0, "dlq", "retry", "--code", "23514", "--operator", "ada", "--reason", "the check is dropped", "--yes")
	s.once("billing/refund", 2)
	if opa, nobody := s.rows("decision_id = 'billing/refund-0' AND uploaded_by = 'opa'"), s.rows("decision_id = 'claimed' AND uploaded_by IS NULL"); opa != 1 || nobody != 1 {
		t.Errorf("%d rows say that opa uploaded them, %d of what was only claimed say that nobody did", opa, nobody)
	}
	if why := s.docket(nil, 0, "why", "billing/refund-0"); !strings.Contains(why, "uploaded by") {
		t.Errorf("docket why does not say who uploaded it:\n%s", why)
	}
	retried := 0
	for _, r := range s.read(s.places.Topic, 4) {
		proven := strings.Contains(string(r.Value), "billing/refund-0")
		if proven && (by(r) != "opa" || !keys.Prove(r)) {
			t.Errorf("%s says %q: %v", r.Value, by(r), r.Headers)
		}
		for _, h := range r.Headers {
			if h.Key == envelope.RetryOf && proven {
				retried++
			}
		}
	}
	if retried != 1 {
		t.Errorf("%d retries of what was uploaded", retried)
	}
}
