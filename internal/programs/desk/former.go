package desk

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/audit/check"
	"docket/internal/kafka"
	"docket/internal/service/config"
)

// formerEvery is the pause between two looks at the homes of before the shards.
const formerEvery = time.Hour

// tellFormer logs at the start, and each hour, what may be unread in the homes of before the shards. No desk of a shard reads
// them. It works until ctx ends; without shards it returns at once.
func tellFormer(ctx context.Context, s config.Settings, topics *kafka.Reader, log zerolog.Logger) {
	for len(s.Shards()) > 0 {
		for _, r := range check.Former(ctx, s, topics) {
			if ctx.Err() != nil {
				return
			}
			log.Warn().Str("what", r.What).Str("detail", r.Detail).Str("hint", r.Hint).Msg("former topic may have unread records")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(formerEvery):
		}
	}
}
