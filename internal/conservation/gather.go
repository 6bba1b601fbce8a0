package conservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/home"
)

// Places says where to look.
type Places struct {
	Brokers      []string
	Topic        string // the source
	Group        string // its consumer group
	ParkingTopic string
	ParkingGroup string
	DLQTopic     string
	ParkingDLQ   string
	SpoolDirs    []string
	DatabaseURL  string
}

// Gather looks into every home, without asking Docket. Called while records are still on their way it shows them as
// unread or parked; a record that moves from home to home meanwhile can be missed, so wait until [Places.Lag] is 0.
func Gather(ctx context.Context, at Places, l *Ledger) (Evidence, error) {
	var ev Evidence
	var err error
	if ev.Read, err = at.committed(ctx, at.Group, at.Topic); err != nil {
		return ev, err
	}
	replayed, err := at.committed(ctx, at.ParkingGroup, at.ParkingTopic)
	if err != nil {
		return ev, err
	}
	for _, dir := range at.SpoolDirs {
		found, err := ReadSpool(dir)
		if err != nil {
			return ev, err
		}
		ev.Forwarded = append(ev.Forwarded, found...)
	}
	for _, t := range []struct {
		topic   string
		home    home.Home
		settled map[int32]int64
	}{
		{at.ParkingTopic, home.Parked, replayed},
		{at.DLQTopic, home.DeadLetter, nil},
		{at.ParkingDLQ, home.Exhausted, nil},
	} {
		found, err := ReadTopic(ctx, at.Brokers, t.topic, t.home, t.settled)
		if err != nil {
			return ev, err
		}
		ev.Forwarded = append(ev.Forwarded, found...)
	}
	conn, err := pgx.Connect(ctx, at.DatabaseURL)
	if err != nil {
		return ev, fmt.Errorf("connect to count rows: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // only read
	if ev.Rows, err = ReadRows(ctx, conn); err != nil {
		return ev, err
	}
	ev.Changed, err = ReadChanged(ctx, conn, l, ev.Rows)
	return ev, err
}

// Lag is the number of records that the two groups have not committed yet.
func (at Places) Lag(ctx context.Context) (source, parking int64, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(at.Brokers...))
	if err != nil {
		return 0, 0, fmt.Errorf("ask for lag: %w", err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if source, err = lag(ctx, adm, at.Group, at.Topic); err != nil {
		return 0, 0, err
	}
	parking, err = lag(ctx, adm, at.ParkingGroup, at.ParkingTopic)
	return source, parking, err
}

func lag(ctx context.Context, adm *kadm.Client, group, topic string) (int64, error) {
	done, err := offsets(ctx, adm, group, topic)
	if err != nil {
		return 0, err
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	var sum int64
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset - done[o.Partition] })
	return sum, nil
}

func (at Places) committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(at.Brokers...))
	if err != nil {
		return nil, fmt.Errorf("ask for offsets: %w", err)
	}
	defer cl.Close()
	return offsets(ctx, kadm.NewClient(cl), group, topic)
}

// offsets are what a group has committed; a partition without a commit is not in the map.
func offsets(ctx context.Context, adm *kadm.Client, group, topic string) (map[int32]int64, error) {
	responses, err := adm.FetchOffsetsForTopics(ctx, group, topic)
	if err == nil {
		err = responses.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil // nobody has joined it yet
	}
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of group %s: %w", group, err)
	}
	done := make(map[int32]int64)
	responses.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			done[o.Partition] = o.At
		}
	})
	return done, nil
}
