package kafka

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stage shows a registry the metrics of the present client of a role. Clients are replaced, and a registry refuses
// two of the same name. Counters begin at zero with each client, as after a restart.
type stage struct {
	room string

	mu  sync.Mutex
	now *clientRegistry
}

// newStage registers the stage of a role. Without a registry it stays empty.
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

// play returns the options of the client that has the role from now on.
func (s *stage) play() []kgo.Opt {
	if s == nil {
		return nil
	}
	own := &clientRegistry{}
	s.mu.Lock()
	s.now = own
	s.mu.Unlock()
	return metrics(own, s.room)
}

// Describe is empty: the metrics of a client are known only when it exists.
func (s *stage) Describe(chan<- *prometheus.Desc) {}

// Collect collects the metrics of the present client.
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

// clientRegistry is the registry of one client.
type clientRegistry struct {
	mu         sync.Mutex
	collectors []prometheus.Collector
}

// Register adds a collector.
func (s *clientRegistry) Register(c prometheus.Collector) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectors = append(s.collectors, c)
	return nil
}

// MustRegister adds collectors.
func (s *clientRegistry) MustRegister(cs ...prometheus.Collector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectors = append(s.collectors, cs...)
}

// Unregister does nothing: the clientRegistry ends with its client.
func (s *clientRegistry) Unregister(prometheus.Collector) bool { return true }
