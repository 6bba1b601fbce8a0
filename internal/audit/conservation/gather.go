package conservation

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/audit/verify"
	"docket/internal/kafka"
	"docket/internal/record/home"
)

// Places names the places to read.
type Places struct {
	Brokers      []string
	Topic        string // the source
	Group        string // its consumer group
	Lanes        []Lane // the lanes beside the default one
	ParkingTopic string
	ParkingGroup string
	DLQTopic     string
	ParkingDLQ   string
	SpoolDirs    []string
	DatabaseURL  string
}

// Lane is the topic of a lane and its consumer group.
type Lane struct{ Topic, Group string }

// sources returns all lanes, the default one first.
func (at Places) sources() []Lane { return append([]Lane{{at.Topic, at.Group}}, at.Lanes...) }

// Gather reads every home, without asking Docket, in the order that [Evidence] requires. Records that are still
// moving show up as unread, parked or spooled.
func Gather(ctx context.Context, at Places, l *Produced) (Evidence, error) {
	ev := Evidence{At: time.Now(), AllRows: true, Committed: verify.Offsets{}, Ends: verify.Offsets{}}
	kafka, err := at.reader()
	if err != nil {
		return ev, err
	}
	defer kafka.Close()
	for _, l := range at.sources() {
		done, err := kafka.Committed(ctx, l.Group, l.Topic)
		if err != nil {
			return ev, err
		}
		ends, err := kafka.Ends(ctx, l.Topic)
		if err != nil {
			return ev, err
		}
		ev.Committed.Add(l.Topic, done)
		ev.Ends.Add(l.Topic, ends)
	}
	if err := at.spools(&ev); err != nil {
		return ev, err
	}
	if ev.Replayed, err = kafka.Committed(ctx, at.ParkingGroup, at.ParkingTopic); err != nil {
		return ev, err
	}
	for _, t := range []struct {
		topic   string
		home    home.Home
		settled map[int32]int64
	}{
		{at.ParkingTopic, home.Parked, ev.Replayed},
		{at.DLQTopic, home.DeadLetter, nil},
		{at.ParkingDLQ, home.Exhausted, nil},
	} {
		found, err := readTopic(ctx, kafka, t.topic, t.home, t.settled)
		if err != nil {
			return ev, err
		}
		ev.Forwarded = append(ev.Forwarded, found...)
	}
	conn, err := pgx.Connect(ctx, at.DatabaseURL)
	if err != nil {
		return ev, fmt.Errorf("connect to count rows: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // it was only read
	if ev.Rows, err = ReadRows(ctx, conn); err != nil {
		return ev, err
	}
	ev.Unequal, err = ReadChanged(ctx, conn, l, ev.Rows)
	return ev, err
}

func (at Places) reader() (*kafka.Reader, error) {
	return kafka.NewReader(kafka.Config{Brokers: at.Brokers})
}

// spools reads the spool directories into the evidence.
func (at Places) spools(ev *Evidence) error {
	for _, dir := range at.SpoolDirs {
		found, forwarded, err := verify.ReadSpool(os.DirFS(dir), dir)
		if err != nil {
			return err
		}
		ev.Spool, ev.Forwarded = append(ev.Spool, found), append(ev.Forwarded, forwarded...)
	}
	return nil
}

// ReadSpool reads every file of a spool directory. A missing directory is empty. A file that disappears meanwhile was
// published and is left out. A broken file is an error.
func ReadSpool(dir string) ([]Forwarded, error) {
	found, forwarded, err := verify.ReadSpool(os.DirFS(dir), dir)
	if err != nil {
		return nil, err
	}
	for _, file := range found.Files {
		if file.Broken != "" {
			return nil, fmt.Errorf("read spooled file %s: it %s", file.Name, file.Broken)
		}
	}
	return forwarded, nil
}

// Lag returns the number of records that the groups have not committed: of all lanes together, and of the replayer.
func (at Places) Lag(ctx context.Context) (source, parking int64, err error) {
	kafka, err := at.reader()
	if err != nil {
		return 0, 0, err
	}
	defer kafka.Close()
	for _, l := range at.sources() {
		behind, err := lag(ctx, kafka, l.Group, l.Topic)
		if err != nil {
			return 0, 0, err
		}
		source += behind
	}
	parking, err = lag(ctx, kafka, at.ParkingGroup, at.ParkingTopic)
	return source, parking, err
}

func lag(ctx context.Context, kafka *kafka.Reader, group, topic string) (int64, error) {
	done, err := kafka.Committed(ctx, group, topic)
	if err != nil {
		return 0, err
	}
	ends, err := kafka.Ends(ctx, topic)
	if err != nil {
		return 0, err
	}
	var sum int64
	for p, end := range ends {
		sum += end - done[p]
	}
	return sum, nil
}
