package kafka

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stage shows a registry the metrics of whichever client plays a room now: clients come and go, and two of the same
// name would be refused. Counters begin anew with each, as after a restart.
type stage struct {
	room string

	mu  sync.Mutex
	now *shelf
}

// newStage registers the stage of a room; without a registry it stays empty.
func newStage(reg prometheus.Registerer, room string) (*stage, error) {
	if reg == nil {
		return nil, nil
	}
	s := &stage{room: room}
	if err := reg.Register(s); err != nil {
		return nil, fmt.Errorf("register the metrics of %s: %w", room, err)
	}
	return s, nil
}

// play gives the options of the client that plays the room from now on.
func (s *stage) play() []kgo.Opt {
	if s == nil {
		return nil
	}
	own := &shelf{}
	s.mu.Lock()
	s.now = own
	s.mu.Unlock()
	return metrics(own, s.room)
}

// Describe is empty: what a client shows is known when it is there.
func (s *stage) Describe(chan<- *prometheus.Desc) {}

// Collect shows the metrics of the client that plays.
func (s *stage) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now == nil {
		return
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	for _, c := range now.collectors {
		c.Collect(ch)
	}
}

// shelf is the registry of one client.
type shelf struct {
	mu         sync.Mutex
	collectors []prometheus.Collector
}

// Register keeps a collector.
func (s *shelf) Register(c prometheus.Collector) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectors = append(s.collectors, c)
	return nil
}

// MustRegister keeps collectors.
func (s *shelf) MustRegister(cs ...prometheus.Collector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectors = append(s.collectors, cs...)
}

// Unregister does nothing: the shelf goes with its client.
func (s *shelf) Unregister(prometheus.Collector) bool { return true }
