package conservation

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/kafka"
	"docket/internal/record/home"
)

// ReadTopic reads a topic from its first record to its present end. A parked record below the offset in settled, by
// partition, counts as settled; nil means no offsets.
func ReadTopic(ctx context.Context, brokers []string, topic string, h home.Home, settled map[int32]int64) ([]Forwarded, error) {
	reader, err := Places{Brokers: brokers}.reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return readTopic(ctx, reader, topic, h, settled)
}

func readTopic(ctx context.Context, reader *kafka.Reader, topic string, h home.Home, settled map[int32]int64) ([]Forwarded, error) {
	ends, err := reader.Ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	for p := range ends {
		ends[p] = math.MaxInt64 // read all records up to the end
	}
	var found []Forwarded
	_, err = reader.Scan(ctx, topic, nil, ends, func(r *kgo.Record) error {
		for _, f := range verify.AllForwardedOf(r, h, topic) {
			f.Settled = r.Offset < settled[r.Partition]
			found = append(found, f)
		}
		return nil
	})
	return found, err
}
