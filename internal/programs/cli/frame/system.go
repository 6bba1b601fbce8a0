package frame

import (
	"context"
	"time"

	"docket/internal/desk/client"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/history/state"
)

// System is what commands work on.
type System struct {
	Book  Book
	Trial Trial // nil: there are no dry runs
	// Horizon asks Kafka when its retention deletes records; nil: it is not asked. A line says so where the answer is unknown.
	Horizon func(ctx context.Context, now time.Time) ([]worker.HorizonLine, error)
	// Backlog counts the dead letters that no desk has entered yet; nil: they are unknown. It ends with its context.
	Backlog func(ctx context.Context) (worker.Backlog, error)
	// Decisions are the stored ones.
	Decisions reader.Store
	// Complete says how complete answers are; nil: nothing is said of it.
	Complete *complete.Answers
	// States are the newest answers of subjects, and their changes; nil: there are none.
	States state.Store
	// Look looks for a decision by its id in every home.
	Look *lookup.Look
	// Homes asks a desk in place of Look; nil: Look does it. Without payload decisions have columns alone.
	Homes func(ctx context.Context, id string, payload bool) (lookup.Answer, error)
	// Why asks a desk for an explanation; nil: it is made here. subject is that of a flag, or empty.
	Why func(ctx context.Context, d reader.Decision, q reader.Question, subject string) (reader.Explanation, error)
	// Desk is the desk that is asked in place of the database; nil: none.
	Desk *client.Client
	// Days are the table's, to be archived and restored; nil: there are none.
	Days archive.Table
	// Left returns the days that archives took out of the table; nil: they are not known.
	Left func(ctx context.Context) ([]archive.Left, error)
	// Noted returns the archives of dead letters that the ledger noted; nil: they are not known.
	Noted func(ctx context.Context) ([]archive.Noted, error)
	// Letters is the ledger, to be archived and restored; nil: there is none.
	Letters archive.LettersTable
	// Calendar says where the decisions of each day are; nil: nothing knows it.
	Calendar func(ctx context.Context) (archive.Calendar, error)
	// Inventory asks a desk what its archive has and lacks; nil: it is looked at here.
	Inventory func(ctx context.Context) (*inventory.Inventory, error)
	// Prove has a desk read an archive of its own and check it against its manifest; nil: it is done
	// here.
	Prove func(ctx context.Context, name string) error
	// Forget has a desk note that a day is given up, as [archive.Carrier.Forget] does, and returns the place of its archive;
	// nil: it is done here.
	Forget func(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (earlier *archive.Forgotten, where string, err error)
	// ForgetLetters is Forget of the archives of dead letters of a day, as [archive.LettersCarrier.Forget] is.
	ForgetLetters func(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (done archive.LettersForgotten, where string, err error)
	// Shelf opens where archives lie: a directory, or s3://bucket/prefix.
	Shelf func(where string) (archive.Shelf, error)
	// RestoreLimit opens the limit on rows of a restore. Without a limit it is nil, or returns nil.
	RestoreLimit func() (RestoreLimit, error)
	Close        func()
}

// RestoreLimit is the limit on rows of a restore; *app.Limits is one.
type RestoreLimit interface {
	// Take waits until some of these rows may be stored, and returns how many. It returns 0 if ctx ended first.
	Take(ctx context.Context, rows int) (granted int)
	// Waiting says what rows wait for now, empty for nothing.
	Waiting() string
	Close()
}

// Trial is the dry run; *worker.Trial is one.
type Trial interface {
	Run(ctx context.Context, f ledger.Filter, limit int64, progress func(done, total int64)) (worker.TrialResult, error)
	RunIDs(ctx context.Context, ids []string, progress func(done, total int64)) (worker.TrialResult, error)
	RunValue(ctx context.Context, value []byte) (worker.TrialResult, error)
}

// Book is as much of the ledger as a person's commands need.
type Book interface {
	ledger.Decider
	ledger.Proposals
	ledger.Reader
	ledger.Cases
	CreateJob(ctx context.Context, j ledger.Job) (ledger.Job, error)
	Job(ctx context.Context, id int64) (ledger.Job, error)
	ListJobs(ctx context.Context, before int64, n int) ([]ledger.Job, error)
	StopJob(ctx context.Context, id int64, why string, by ledger.Actor) (ledger.Job, error)
	ResumeJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error)
	Desks(ctx context.Context, within time.Duration) ([]string, error)
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
	Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error)
	OrderSurplus(ctx context.Context, id int64, by ledger.Actor) error
}
