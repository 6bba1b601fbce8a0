package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A broker refuses a whole set of records that is too large, or because of some in it. Its records are sent again in smaller
// parts, so that none has the answer of another.

// tooLarge reports whether a broker refused a set of records as too large: as more than max.message.bytes, or as more
// than segment.bytes of the topic (RECORD_LIST_TOO_LARGE).
func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// ofOne reports whether a broker refused a whole set of records because of some in it. Such a record has no key for a compacted
// topic, or a time that the topic does not take. The client does not tell which they are.
func ofOne(err error) bool {
	return errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp)
}

// of returns the records of some whose errors are of a kind.
func of(some []int, errs []error, kind func(error) bool) (those []int) {
	for _, i := range some {
		if kind(errs[i]) {
			those = append(those, i)
		}
	}
	return those
}

// every returns the indices of n records.
func every(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// together reports whether the error of a record may be due to others that were sent with it.
func together(err error) bool { return tooLarge(err) || ofOne(err) }

// smaller sends records of sets that were too large in halves, in their order, and those of them that are refused again in
// halves again. A single record has a request of its own. So the number of requests follows that of the sets that the topic
// takes. Once ctx has ended, records without an answer count as unanswered.
func (c *clients) smaller(ctx context.Context, some []int, records []*kgo.Record, placed []Place, errs []error) {
	switch len(some) {
	case 0:
	case 1:
		placed[some[0]], errs[some[0]] = c.byItself(ctx, records[some[0]])
	default:
		for _, half := range [][]int{some[:len(some)/2], some[len(some)/2:]} {
			if len(half) > 1 {
				half = c.part(ctx, half, records, placed, errs)
			}
			c.smaller(ctx, half, records, placed, errs)
		}
	}
}

// mostApart limits how many parts of refused sets a call sends. If a topic takes none of the records, this bounds the requests.
const mostApart = 200

// apart sends odd ones, the records of sets that were refused because of some, in halves, and the refused ones in halves again. Their
// order is by chance: where the brokers refuse many, others have their turn in a later call.
func (c *clients) apart(ctx context.Context, odd []int, records []*kgo.Record, placed []Place, errs []error) {
	sets := [][]int{odd}
	for sent := 0; len(sets) > 0; sets = sets[1:] {
		for _, half := range [][]int{sets[0][:len(sets[0])/2], sets[0][len(sets[0])/2:]} {
			if len(half) == 0 {
				continue
			}
			if sent++; sent > mostApart || ctx.Err() != nil {
				return
			}
			odd := errs[half[0]]
			switch left := c.part(ctx, half, records, placed, errs); {
			case len(left) > 1:
				sets = append(sets, left)
				for _, i := range left {
					if tooLarge(errs[i]) { // none of them may be too large alone, and this call may end before that is known
						errs[i] = odd
					}
				}
			case len(left) == 1 && tooLarge(errs[left[0]]): // with records of another call it may be
				placed[left[0]], errs[left[0]] = c.byItself(ctx, records[left[0]])
			}
		}
	}
}

// part sends some of the records again. It returns those that the brokers refused together.
func (c *clients) part(ctx context.Context, of []int, records []*kgo.Record, placed []Place, errs []error) (left []int) {
	some := make([]*kgo.Record, len(of))
	for n, i := range of {
		some[n] = records[i]
	}
	at, failed := produce(ctx, c.many, some)
	for n, i := range of {
		if placed[i], errs[i] = at[n], failed[n]; together(failed[n]) {
			left = append(left, i)
		}
	}
	return left
}

// byItself sends one record in a request of its own, so that the answer is about this record.
func (c *clients) byItself(ctx context.Context, record *kgo.Record) (Place, error) {
	select {
	case c.alone <- struct{}{}:
		defer func() { <-c.alone }()
	case <-ctx.Done():
		return Place{}, ErrUnanswered
	}
	placed, errs := produce(ctx, c.single, []*kgo.Record{record})
	if err := errs[0]; errors.Is(err, kerr.RecordListTooLarge) {
		return placed[0], fmt.Errorf("%w: %w", kerr.MessageTooLarge, err)
	}
	return placed[0], errs[0]
}
