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
	told := map[string]string{}
	for len(s.Shards()) > 0 {
		found := check.Former(ctx, s, topics)
		if ctx.Err() != nil {
			return
		}
		logFormer(found, told, log)
		select {
		case <-ctx.Done():
			return
		case <-time.After(formerEvery):
		}
	}
}

// logFormer logs what was found, and notes its details in told. It logs once that something is not known: a Docket that always had
// shards may have no right to look.
func logFormer(found []check.Result, told map[string]string, log zerolog.Logger) {
	for _, r := range found {
		if r.Level != check.Fail && told[r.What] == r.Detail {
			continue
		}
		told[r.What] = r.Detail
		log.Warn().Str("what", r.What).Str("detail", r.Detail).Str("hint", r.Hint).Msg("former topic may have unread records")
	}
}
