package kafka

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// keepingEvery is the pause between two requests for the retention of topics.
const keepingEvery = time.Minute

// keeping is the retention of topics, as last reported.
type keeping struct {
	mu   sync.Mutex
	next time.Time
	of   map[string]time.Duration
}

// Retention returns the retention of the topics in SourceConfig.RetentionOf, as reported once a minute. A negative
// value means no limit by time. A topic is missing if nothing is known about it or its settings may not be read.
func (s *Source) Retention() map[string]time.Duration {
	s.keeping.mu.Lock()
	defer s.keeping.mu.Unlock()
	return maps.Clone(s.keeping.of)
}

// lookRetention asks for the retention if it is time to. A failure is not a fault, because only a metric depends on
// it.
func (s *session) lookRetention(ctx context.Context) {
	k, topics := &s.source.keeping, s.source.sc.RetentionOf
	now := time.Now()
	k.mu.Lock()
	due := len(topics) > 0 && !now.Before(k.next)
	if due {
		k.next = now.Add(keepingEvery)
	}
	k.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.source.cfg.RequestTimeout)
	defer cancel()
	for _, topic := range topics {
		configs, err := s.admin.DescribeTopicConfigs(ctx, topic) // alone, because one that may not be read hides the others
		refused := (*kadm.AuthError)(nil)
		if err != nil && !errors.As(err, &refused) {
			return // the last answer stays valid
		}
		t := Topic{Name: topic}
		t.settings(configs, err)
		k.hear(t)
	}
}

func (k *keeping) hear(t Topic) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = make(map[string]time.Duration)
	}
	switch {
	case t.ConfigErr != nil || !t.RetentionKnown:
		delete(k.of, t.Name)
	case t.CleanupPolicy != "" && !strings.Contains(t.CleanupPolicy, "delete"):
		k.of[t.Name] = -1
	default:
		k.of[t.Name] = t.Retention
	}
}
