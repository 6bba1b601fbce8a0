package desk

import (
	"context"
	"time"

	"docket/internal/history/complete"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// NewWatch makes the watch that says until when answers are complete.
func NewWatch(s config.Settings, log complete.Log) *complete.Watch {
	return complete.NewWatch(Watched(s), log)
}

// Watched names the topics of all lanes, and those behind them. With shards a partition that no shard has counts for each: nobody
// reads it. So the reader must have all partitions.
func Watched(s config.Settings) complete.Config {
	c := complete.Config{
		Parking:        complete.Source{Topic: s.KafkaParkingTopic, Group: s.ParkingGroup},
		Dead:           []complete.Source{{Topic: s.KafkaDLQTopic, Group: s.DeskGroup}, {Topic: s.KafkaParkingDLQTopic, Group: s.DeskGroup}},
		MaxRecordBytes: int64(s.MaxRecordBytes),
	}
	if share := s.Share(); share != nil {
		c.Has = func(p int32) bool {
			_, owned := share.All.Owner(p)
			return share.Has(p) || !owned
		}
	}
	for _, l := range s.Lanes() {
		c.Sources = append(c.Sources, complete.Source{Topic: l.Topic, Group: l.Group})
	}
	return c
}

// lookWithin is how long a command may look at Kafka before it reads.
const lookWithin = 500 * time.Millisecond

// booksWithin is how long a command may ask the ledger.
const booksWithin = time.Second

// CompleteOnce makes the answers of one command. It looks at Kafka once, for half a second at most, and closes it.
func CompleteOnce(s config.Settings, books complete.Books) *complete.Answers {
	return &complete.Answers{Books: books, Within: booksWithin, Status: func(ctx context.Context) complete.Status {
		ctx, cancel := context.WithTimeout(ctx, lookWithin)
		defer cancel()
		return lookOnce(ctx, s)
	}}
}

func lookOnce(ctx context.Context, s config.Settings) complete.Status {
	brokers, err := app.Kafka(s, "complete")
	if err != nil {
		return complete.Status{}
	}
	brokers.Shares = nil
	reader, err := kafka.NewReader(brokers)
	if err != nil {
		return complete.Status{}
	}
	defer reader.Close()
	c := Watched(s)
	c.SkipsParkedTimes = true // there is no time to read them
	return complete.NewWatch(c, reader).Settle(ctx)
}
