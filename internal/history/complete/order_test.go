package complete

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// noted is a Kafka that notes in which order it is asked.
type noted struct {
	mu    sync.Mutex
	asked []string
}

func (n *noted) note(what string) (map[int32]int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, what)
	return map[int32]int64{0: 1}, nil
}

func (n *noted) CommittedNoted(_ context.Context, _, topic string) (map[int32]int64, map[int32]string, error) {
	done, err := n.note("committed of " + topic)
	return done, nil, err
}

func (n *noted) Starts(context.Context, string) (map[int32]int64, error) { return nil, nil }

func (n *noted) Ends(_ context.Context, topic string) (map[int32]int64, error) {
	return n.note("end of " + topic)
}

func (n *noted) Scan(_ context.Context, _ string, from, _ map[int32]int64, _ func(*kgo.Record) error) (map[int32]int64, error) {
	return from, nil
}

// TestLook_AsksInTheOrderOfTheRecords holds the order that the package's text explains.
func TestLook_AsksInTheOrderOfTheRecords(t *testing.T) {
	t.Parallel()
	n := &noted{}
	w := NewWatch(Config{Sources: []Source{{"logs", "docket"}}, Parking: Source{"parking", "replayers"}, Dead: []Source{{"dlq", "desk"}, {"parking-dlq", "desk"}}}, n)
	for range 2 {
		if err := w.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one := []string{"end of logs", "committed of logs", "committed of parking", "end of parking", "committed of dlq", "end of dlq", "committed of parking-dlq", "end of parking-dlq"}
	want := slices.Concat([]string{"committed of logs"}, one, one)
	if !slices.Equal(n.asked, want) {
		t.Errorf("it asks for\n%q\nwant\n%q", n.asked, want)
	}
}
