package desk

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
	"docket/internal/desk/worker"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// name is the name of the desk in the audit log, for acts that no person asked for.
const name = "docket desk"

// instance names this process among others. A container's first process always has the same id, so that a desk that was
// killed and its successor would be one.
func instance() string { return app.Instance() + "-" + strings.ToLower(rand.Text()[:4]) }

// work makes the workers on the ledger.
func (p *Program) work(reg prometheus.Registerer) error {
	s, book, log := p.settings, p.parts.ledger, p.log
	holder := p.options.Instance
	metrics := worker.NewMetrics(reg)

	channels, err := notify.New(s.DeskAlertURLs.Reveal(), log, reg)
	if err != nil {
		return config.Complaint{Variable: "DOCKET_DESK_ALERT_URLS", Text: err.Error()}
	}
	horizon := NewHorizon(s, p.parts.reader, book)
	alerts := worker.NewAlerts(worker.AlertConfig{
		Holder: holder, Threshold: int64(s.DeskAlertThreshold), Interval: s.DeskAlertInterval, Repeat: s.DeskAlertRepeat, ReportInterval: s.DeskReportInterval,
		Observer: metrics,
	}, book, horizon, channels, log)
	p.intake = worker.NewIntake(worker.IntakeConfig{
		MaxRecordBytes: int64(s.MaxRecordBytes), MaxAttempts: s.DeskMaxAttempts, Actor: ledger.Actor{Name: name, Why: "read from its dead-letter topic"}, Observer: metrics, Keys: s.HeaderKeys(),
	}, beating{book, &p.pulse}, alerts.New, log)
	schedule, err := worker.NewSchedule(worker.ScheduleConfig{
		Holder: holder, First: s.DeskRetryFirst, Interval: s.DeskRetryInterval, Kinds: Kinds(s), Lease: s.DeskLease,
		Backoff: s.DeskRetryBackoff, MaxBackoff: s.DeskRetryMaxBackoff, MaxAttempts: s.DeskMaxAttempts,
	}, book, p.parts.db, log)
	if err != nil {
		return config.Complaint{Variable: "DOCKET_DESK_RETRY_KINDS", Text: err.Error()}
	}
	p.workers = []runner{
		worker.NewSurplus(worker.SurplusConfig{Holder: holder, MaxEntered: s.DeskMaxEntered, Archive: archiveSurplus(s, p.parts.db), Observer: metrics}, p.intake, book, SurplusTopics(p.parts.reader), log),
		worker.NewRelay(worker.RelayConfig{
			Holder: holder, Topics: RetryTopics(s), Interval: s.DeskRelayInterval, Batch: s.DeskRelayBatch, Tries: s.DeskRelayTries, Lease: RelayLease(s), Extend: s.DeskLease, Observer: metrics, Keys: s.HeaderKeys(),
		}, book, Publisher(p.parts.publisher), log),
		worker.NewWatcher(worker.WatchConfig{MaxRecordBytes: int64(s.MaxRecordBytes), MaxAttempts: s.DeskMaxAttempts}, book, table{p.parts.db}, ledger.Actor{Name: name}, log),
		worker.NewMarking(worker.MarkConfig{MaxRecordBytes: int64(s.MaxRecordBytes), Observer: metrics}, book, log),
		worker.NewUpkeep(worker.UpkeepConfig{Holder: holder, KeepResolved: s.DeskKeepResolved, Counter: book, LeftOff: historydb.NewReader(p.parts.db.DB).LeftOff, Observer: metrics}, book, ledger.Actor{Name: name}, log),
		worker.NewTally(historydb.NewReader(p.parts.db.DB), log),
		worker.NewIndexing(historydb.NewReader(p.parts.db.DB).Index, log),
		worker.NewJobs(worker.JobsConfig{Holder: holder, LetterLease: s.DeskLease}, book, p.parts.db, log),
		worker.NewRules(worker.RulesConfig{Holder: holder, LetterLease: s.DeskLease, Observer: metrics}, book, p.parts.db, log),
		schedule, alerts, channels,
	}
	if s.States {
		if err := p.keepStates(reg, channels); err != nil {
			return err
		}
	}
	if s.ArchiveAge() > 0 {
		if err := p.archiveDays(reg); err != nil {
			return err
		}
	}
	return p.openAPI(NewTrial(s, ledgerdb.New(p.parts.asked.DB), p.parts.asked), horizon, reg)
}

// Kinds are the kinds of dead letters that the schedule retries.
func Kinds(s config.Settings) []envelope.Kind {
	var kinds []envelope.Kind
	for _, k := range s.DeskRetryKinds {
		kinds = append(kinds, envelope.Kind(k))
	}
	return kinds
}

// NewTrial makes the dry run.
func NewTrial(s config.Settings, book ledger.Reader, d *store.Store) *worker.Trial {
	return worker.NewTrial(worker.TrialConfig{MaxRecordBytes: int64(s.MaxRecordBytes), Hint: db.Hint}, book, d)
}

// NewHorizon makes the loss horizon.
func NewHorizon(s config.Settings, reader *kafka.Reader, book ledger.Reader) *worker.Horizon {
	var sources []worker.LaneSource
	for _, l := range s.Lanes() {
		sources = append(sources, worker.LaneSource{Lane: l.Name(), Topic: l.Topic, Group: l.Group})
	}
	return worker.NewHorizon(worker.HorizonConfig{
		Sources: sources, ParkingTopic: s.KafkaParkingTopic, ParkingGroup: s.ParkingGroup, DLQTopic: s.KafkaDLQTopic, ParkingDLQTopic: s.KafkaParkingDLQTopic, DeskGroup: s.DeskGroup,
	}, logs{reader}, book)
}

// RetryTopics are the topics that retries may go to: if the settings name none, those of all lanes. A retry goes to the
// topic that its dead letter came from, so it stays in its lane.
func RetryTopics(s config.Settings) []string {
	if len(s.DeskRetryTopics) > 0 {
		return s.DeskRetryTopics
	}
	return s.SourceTopics()
}

// RelayLease is how long the relay may keep rows for itself: four times the longest publish, so that it never ends before the answer.
func RelayLease(s config.Settings) time.Duration { return max(10*time.Second, 4*s.PublishTimeout) }
