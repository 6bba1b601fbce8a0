package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/audit/conservation"
)

// Program is one of the programs and how to start it.
type Program struct {
	Name    string   // [Consumer], [Replayer] or [Desk]
	Environ []string // its settings, in the form of os.Environ: no others are to be read
	Log     io.Writer
}

// The names of the programs.
const (
	Consumer = "consumer"
	Replayer = "parking-replayer"
	Desk     = "docket"
)

// Config says what to show. Fields are required, unless they are marked.
type Config struct {
	Records int           // Kafka records to produce, at least [conservation.MinRecords]
	Spread  time.Duration // how long producing them takes
	Outage  time.Duration // how long Postgres is away
	Keep    bool          // stay up until ctx ends
	// LedgerWait is how long the ledger may gain no dead letter before it counts as incomplete.
	LedgerWait time.Duration
	PlantLoss  bool // delete one stored decision before counting; a test checks that the account reports it
	NoDesk     bool // start no desk; a test checks that the demo fails
	Seed       uint64
	Dir        string // of this demo alone, see [Supervise]
	Cache      string // kept from demo to demo
	Docket     Docket // printed in the commands at the end
	Samples    [][]byte
	Migrate    func(ctx context.Context, databaseURL string) error
	Launch     func(ctx context.Context, p Program) error // runs until ctx ends
	Out        io.Writer
	Live       bool // Out is a terminal: progress is one line that changes
}

var (
	// ErrUnbalanced is the error of an account that does not add up.
	ErrUnbalanced = errors.New("the account does not add up")
	// ErrLedger is the error of a ledger that differs from the dead-letter topics.
	ErrLedger = errors.New("the ledger differs from the dead-letter topics")
)

// Run runs the whole demo. The error wraps [ErrUnbalanced] when the account does not add up, and [ErrLedger] when the
// ledger does not hold every dead letter.
func Run(ctx context.Context, cfg Config) (err error) {
	began := time.Now()
	release, err := claim(cfg.Dir)
	if err != nil {
		return err
	}
	defer release()
	scr := newScreen(cfg.Out, cfg.Live)
	defer func() {
		if ctx.Err() != nil {
			scr.say("stopped    all programs are stopped, the data is deleted")
		}
	}()
	scr.say("Docket demo: OPA decision logs go through Kafka into Postgres. Postgres stops in the middle.")
	scr.say("kafka      kfake, a stand-in inside this process; it has no replication")
	swept, err := sweep(ctx, filepath.Dir(cfg.Dir))
	if err != nil {
		return fmt.Errorf("clean up after an earlier demo: %w", err)
	}
	if swept > 0 {
		scr.say("removed    data and servers of %d earlier demos that were killed", swept)
	}
	database, err := prepare(ctx, cfg.Dir, cfg.Cache, scr.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Stop()) }()
	if err := database.Start(ctx); err != nil {
		return err
	}
	kafka, err := startBroker(cfg.Dir)
	if err != nil {
		return err
	}
	defer kafka.Close()
	if err := setUpTable(ctx, cfg, database.URL()); err != nil {
		return err
	}
	s := &show{
		cfg: cfg, screen: scr, database: database, began: began, ledger: conservation.NewProduced(),
		places: kafka.places(cfg.Dir, database.URL()),
	}
	return s.run(ctx)
}

// setUpTable migrates, and adds the constraint that makes the table refuse what no decoder objects to.
func setUpTable(ctx context.Context, cfg Config, databaseURL string) error {
	if err := cfg.Migrate(ctx, databaseURL); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to add a constraint: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, conservation.RefuseSQL); err != nil {
		return fmt.Errorf("add a constraint: %w", err)
	}
	return nil
}
