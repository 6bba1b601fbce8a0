package desk

import (
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/worker"
	"docket/internal/kafka"
)

func TestPublish_NoAnswer(t *testing.T) {
	t.Parallel()
	p, err := kafka.NewPublisher(kafka.Config{Brokers: []string{"127.0.0.1:1"}, ClientID: "docket"}, kafka.PublisherConfig{Timeout: 200 * time.Millisecond}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	places, errs := publisher{p}.Place(t.Context(), []*kgo.Record{{Topic: "a"}, {Topic: "b"}})
	if len(places) != 2 || len(errs) != 2 {
		t.Fatalf("%d places and %d errors of 2 records", len(places), len(errs))
	}
	for _, err := range errs {
		if !errors.Is(err, worker.ErrUnanswered) || !errors.Is(err, kafka.ErrUnanswered) {
			t.Errorf("%v", err)
		}
	}
}

// A table whose trigger masks payloads has no row with the payload of a retry.
func TestWhere_RowByRawBytes(t *testing.T) {
	t.Parallel()
	for _, s := range soughtOf([]worker.Sought{{ID: "a", Raw: []byte("{}")}, {ID: "b", Raw: []byte("[]")}}) {
		if !s.Came || s.ID == "" || s.Raw == nil {
			t.Errorf("%+v", s)
		}
	}
}
