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

// keepingEvery is how often the brokers are asked how long topics keep their records.
const keepingEvery = time.Minute

// keeping is how long topics keep their records, as last heard.
type keeping struct {
	mu   sync.Mutex
	next time.Time
	of   map[string]time.Duration
}

// Retention is how long the topics of SourceConfig.RetentionOf keep their records, as last heard, once a minute: negative is
// for ever, as far as time goes. A topic of which nothing is known, or whose settings may not be asked for, is not in it.
func (s *Source) Retention() map[string]time.Duration {
	s.keeping.mu.Lock()
	defer s.keeping.mu.Unlock()
	return maps.Clone(s.keeping.of)
}

// lookRetention asks if it is time to. Whoever may not see the settings, or finds nobody who answers, knows no more: it is
// no fault, as nothing but a metric depends on it.
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
		configs, err := s.admin.DescribeTopicConfigs(ctx, topic) // alone: one that may not be asked about hides the others
		refused := (*kadm.AuthError)(nil)
		if err != nil && !errors.As(err, &refused) {
			return // what was heard last stands
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
