package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/record/decision"
)

// byID finds the source records with a decision id: from every home, or else by reading the source.
func (s *System) byID(ctx context.Context, w *Whereabouts, id string, since time.Time) ([]verify.Place, []verify.Row, error) {
	places, rows, err := s.everywhere(ctx, w, id)
	if err != nil || len(places)+len(w.Refused)+len(w.Found) > 0 {
		return places, rows, err
	}
	for _, topic := range s.settings.SourceTopics() {
		found, err := s.scanFor(ctx, w, topic, id, since)
		if err != nil {
			return nil, nil, err
		}
		places = append(places, found...)
	}
	return places, nil, nil
}

// scanFor reads a source topic since a time and returns the records with the id.
func (s *System) scanFor(ctx context.Context, w *Whereabouts, name, id string, since time.Time) ([]verify.Place, error) {
	var places []verify.Place
	n, next := 0, time.Now().Add(patience)
	from, to, err := s.between(ctx, name, since)
	if err == nil {
		_, err = s.kafka.Scan(ctx, name, from, to, func(r *kgo.Record) error {
			if n++; time.Now().After(next) {
				s.say(fmt.Sprintf("%s: %d records, %d with that id", name, n, len(places)))
				next = time.Now().Add(patience)
			}
			ds := verify.DecisionsOf(r, int64(s.settings.MaxRecordBytes))
			if slices.ContainsFunc(ds, func(d verify.Decision) bool {
				return d.ID == id || d.Code != "" && claimed(d.Body, id, int64(s.settings.MaxRecordBytes))
			}) || string(r.Key) == id && ds[0].ID == "" {
				places = append(places, verify.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset})
			}
			return nil
		})
	}
	if err != nil && ctx.Err() == nil {
		w.Unlooked = append(w.Unlooked, fmt.Sprintf("%s since %s: %v", name, since.UTC().Format(time.RFC3339), err))
		return places, nil
	}
	w.Looked = append(w.Looked, fmt.Sprintf("%s, %d records since %s", name, n, since.UTC().Format(time.RFC3339)))
	return places, err
}

// claimed reports whether what the decoder refuses claims an id: a decision, or one of an array that is refused as a whole.
func claimed(body []byte, id string, maxBytes int64) bool {
	if decision.ClaimOf(body).ID == id {
		return true
	}
	for _, c := range decision.ClaimsOf(body, maxBytes) {
		if c.ID == id {
			return true
		}
	}
	return false
}

// between returns the offsets of a topic from a time to its end.
func (s *System) between(ctx context.Context, name string, since time.Time) (from, to map[int32]int64, err error) {
	if from, err = s.kafka.Since(ctx, name, since); err == nil {
		to, err = s.kafka.Ends(ctx, name)
	}
	return from, to, err
}
