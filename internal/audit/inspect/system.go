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
	"docket/internal/history/cold"
	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/home"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// System is a live system to examine.
type System struct {
	settings config.Settings
	brokers  kafka.Config
	kafka    *kafka.Reader
	db       *store.Store
	spools   []string
	say      func(string)
	// elsewhere looks for an id in every home.
	elsewhere func(ctx context.Context, id string) (lookup.Answer, error)
	days      *cold.Days  // nil: none are read here
	asked     func() bool // a standby was asked, which may lack what the primary has; nil: nothing was
}

// Options are not in the settings.
type Options struct {
	// Spools are the spool directories; if empty, that of the settings.
	Spools []string
	// Progress is called regularly during a long search; nil: not called.
	Progress func(string)
	// Shelf opens the storage of archives; nil: they are not searched.
	Shelf func(where string) (archive.Shelf, error)
	// Within limits the lookup by id; zero: as in [FindLimits].
	Within time.Duration
	// Elsewhere looks for an id in every home; nil: this package does it.
	Elsewhere func(ctx context.Context, id string) (lookup.Answer, error)
}

// FindLimits are those of where-is: a person waits, and needs a complete answer.
var FindLimits = lookup.Limits{Within: 30 * time.Second, Records: 1_000_000, Bytes: 1 << 30}

// lookTimeout limits one lookup in the table. It is longer than for a write, because nothing waits for it.
const lookTimeout = time.Minute

// Open prepares a System. It does not connect.
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
		sys.days = look.Days
		sys.elsewhere = func(ctx context.Context, id string) (lookup.Answer, error) { return look.Find(ctx, id), nil }
	} else if o.Shelf != nil {
		sys.days = ArchivedDays(s, sys.db, o.Shelf)
	}
	return sys, nil
}

// Close closes all connections.
func (s *System) Close() {
	s.kafka.Close()
	s.days.Close()
	s.db.Close()
}

// margin is how much earlier than the source Docket's topics are read, because producers' clocks can be ahead.
const margin = time.Hour

// look reads everything except the source and the table into the evidence, in the order that makes it sound. The
// first record of interest was produced at from; zero: read each topic from its start.
func (s *System) look(ctx context.Context, from time.Time) (*verify.Evidence, error) {
	return s.lookWithin(ctx, from, 0)
}

// lookWithin is look with a limit for the forwarded records that are kept; 0: there is none.
func (s *System) lookWithin(ctx context.Context, from time.Time, most int) (*verify.Evidence, error) {
	ev := &verify.Evidence{At: time.Now(), Live: true}
	var err error
	if ev.Committed, err = s.committed(ctx); err != nil {
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
		err := s.forwarded(ctx, t.name, from, func(r *kgo.Record) error {
			for _, f := range verify.AllForwardedBy(keys, r, t.home, t.name) {
				f.Settled = t.home == home.Parked && r.Offset < ev.Replayed[r.Partition]
				ev.Forwarded = append(ev.Forwarded, f)
			}
			if most > 0 && len(ev.Forwarded) > most {
				return &TooManyError{most}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	ev.Ends, err = s.ends(ctx)
	return ev, err
}

// committed returns the offsets that the group of each lane has committed in its topic.
func (s *System) committed(ctx context.Context) (verify.Offsets, error) {
	all := make(verify.Offsets)
	for _, l := range s.settings.Lanes() {
		done, err := s.kafka.Committed(ctx, l.Group, l.Topic)
		if err != nil {
			return nil, err
		}
		all.Add(l.Topic, done)
	}
	return all, nil
}

// ends returns the log ends of the topics of all lanes.
func (s *System) ends(ctx context.Context) (verify.Offsets, error) {
	all := make(verify.Offsets)
	for _, topic := range s.settings.SourceTopics() {
		ends, err := s.kafka.Ends(ctx, topic)
		if err != nil {
			return nil, err
		}
		all.Add(topic, ends)
	}
	return all, nil
}

type topic struct {
	name string
	home home.Home
}

// topics returns Docket's topics, in the order in which records move.
func (s *System) topics() []topic {
	return []topic{
		{s.settings.KafkaParkingTopic, home.Parked}, {s.settings.KafkaDLQTopic, home.DeadLetter}, {s.settings.KafkaParkingDLQTopic, home.Exhausted},
	}
}

// forwarded reads the records that were forwarded to a topic since a time.
func (s *System) forwarded(ctx context.Context, name string, from time.Time, each func(*kgo.Record) error) error {
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
		if err := each(r); err != nil {
			return err
		}
		if n++; time.Now().After(next) {
			s.say(fmt.Sprintf("%s: %d records", name, n))
			next = time.Now().Add(patience)
		}
		return nil
	})
	return err
}

// patience is the time before the first progress report.
const patience = 5 * time.Second

// spooled reads a spool directory. A missing one is left out of the evidence.
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
