package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/history/archive"
	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/home"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// System is a live system to look at.
type System struct {
	settings config.Settings
	brokers  kafka.Config
	kafka    *kafka.Reader
	db       *store.Store
	spools   []string
	say      func(string)
	// elsewhere looks for an id in every home.
	elsewhere func(ctx context.Context, id string) (lookup.Answer, error)
}

// Options are what the settings do not say.
type Options struct {
	// Spools are the spool directories to look at; without any it is that of the settings.
	Spools []string
	// Progress is told, now and then, how far a long look has come; nil: nobody is.
	Progress func(string)
	// Shelf opens where archives are; nil: archives are not looked at.
	Shelf func(where string) (archive.Shelf, error)
	// Within is how long the look-up by id may take; zero: as [FindLimits] has it.
	Within time.Duration
	// Elsewhere looks for an id in every home; nil: this look does it by itself.
	Elsewhere func(ctx context.Context, id string) (lookup.Answer, error)
}

// FindLimits are those of where-is: a person waits for it, and wants a whole answer.
var FindLimits = lookup.Limits{Within: 30 * time.Second, Records: 1_000_000, Bytes: 1 << 30}

// lookTimeout is how long one look-up in the table may take: longer than a write, as nobody waits for it.
const lookTimeout = time.Minute

// Open prepares a look; it dials nothing.
func Open(s config.Settings, o Options) (*System, error) {
	brokers, err := app.Kafka(s, "inspect")
	if err != nil {
		return nil, err
	}
	sys := &System{settings: s, brokers: brokers, spools: o.Spools, say: o.Progress}
	if len(sys.spools) == 0 && s.SpoolDir != "" {
		sys.spools = []string{s.SpoolDir}
	}
	if sys.say == nil {
		sys.say = func(string) {}
	}
	if sys.kafka, err = kafka.NewReader(brokers); err != nil {
		return nil, err
	}
	sys.db, err = store.Open(db.Config{
		URL: s.DatabaseURL.Reveal(), Fresh: app.FreshDatabaseURL(s), StoreTimeout: lookTimeout, ApplicationName: "docket-inspect", MaxConns: 1, ReadOnly: true,
	}, zerolog.Nop())
	if err != nil {
		sys.kafka.Close()
		return nil, err
	}
	if sys.elsewhere = o.Elsewhere; sys.elsewhere == nil {
		limits := FindLimits
		if o.Within > 0 {
			limits.Within = o.Within
		}
		look := Looking(s, sys.db, Sight{Spools: o.Spools, Shelf: o.Shelf, Limits: limits})
		sys.elsewhere = func(ctx context.Context, id string) (lookup.Answer, error) { return look.Find(ctx, id), nil }
	}
	return sys, nil
}

// Close closes all connections.
func (s *System) Close() {
	s.kafka.Close()
	s.db.Close()
}

// margin is how much earlier than the source the topics of ours are read: clocks of producers can be ahead of ours.
const margin = time.Hour

// look reads everything but the source and the table into evidence, in the order that makes it sound. from is when the
// first record of interest was produced; zero: from the start of each topic.
func (s *System) look(ctx context.Context, from time.Time) (*verify.Evidence, error) {
	ev := &verify.Evidence{At: time.Now(), Live: true, Topic: s.settings.KafkaTopic}
	var err error
	if ev.Committed, err = s.kafka.Committed(ctx, s.settings.KafkaGroup, s.settings.KafkaTopic); err != nil {
		return nil, err
	}
	for _, dir := range s.spools {
		if err := spooled(dir, ev); err != nil {
			return nil, err
		}
	}
	if ev.Replayed, err = s.kafka.Committed(ctx, s.settings.ParkingGroup, s.settings.KafkaParkingTopic); err != nil {
		return nil, err
	}
	keys := s.settings.HeaderKeys()
	for _, t := range s.topics() {
		err := s.forwarded(ctx, t.name, from, func(r *kgo.Record) {
			for _, f := range verify.AllForwardedBy(keys, r, t.home, t.name) {
				f.Settled = t.home == home.Parked && r.Offset < ev.Replayed[r.Partition]
				ev.Forwarded = append(ev.Forwarded, f)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	ev.Ends, err = s.kafka.Ends(ctx, s.settings.KafkaTopic)
	return ev, err
}

type topic struct {
	name string
	home home.Home
}

// topics are those of ours, in the order in which records move.
func (s *System) topics() []topic {
	return []topic{
		{s.settings.KafkaParkingTopic, home.Parked}, {s.settings.KafkaDLQTopic, home.DeadLetter}, {s.settings.KafkaParkingDLQTopic, home.Exhausted},
	}
}

// forwarded reads what was forwarded to a topic since a time.
func (s *System) forwarded(ctx context.Context, name string, from time.Time, each func(*kgo.Record)) error {
	ends, err := s.kafka.Ends(ctx, name)
	if err != nil {
		return err
	}
	var begin map[int32]int64
	if !from.IsZero() {
		if begin, err = s.kafka.Since(ctx, name, from.Add(-margin)); err != nil {
			return err
		}
	}
	for p := range ends {
		ends[p] = math.MaxInt64
	}
	n, next := 0, time.Now().Add(patience)
	_, err = s.kafka.Scan(ctx, name, begin, ends, func(r *kgo.Record) error {
		each(r)
		if n++; time.Now().After(next) {
			s.say(fmt.Sprintf("%s: %d records", name, n))
			next = time.Now().Add(patience)
		}
		return nil
	})
	return err
}

// patience is how long nothing is said.
const patience = 5 * time.Second

// spooled reads a spool directory; one that is not there is left out of the evidence.
func spooled(dir string, ev *verify.Evidence) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	found, forwarded, err := verify.ReadSpool(os.DirFS(dir), strings.TrimSuffix(dir, "/"))
	if err != nil {
		return err
	}
	ev.Spool, ev.Forwarded = append(ev.Spool, found), append(ev.Forwarded, forwarded...)
	return nil
}
