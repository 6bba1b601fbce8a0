package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/conservation"
)

// Program is one of the two programs and how to start it.
type Program struct {
	Name    string   // consumer or parking-replayer
	Environ []string // its settings, in the form of os.Environ: no others are to be read
	Log     io.Writer
}

// The names of the programs.
const (
	Consumer = "consumer"
	Replayer = "parking-replayer"
)

// Config says what to show. What is not marked is needed.
type Config struct {
	Records   int           // Kafka records to produce, at least [conservation.MinRecords]
	Spread    time.Duration // how long producing them takes
	Outage    time.Duration // how long Postgres is away
	Keep      bool          // stay up until ctx ends
	PlantLoss bool          // take one stored decision out of the table before counting, to show that the account sees it
	Seed      uint64
	Dir       string // of this demo alone, see [Supervise]
	Cache     string // kept from demo to demo
	Samples   [][]byte
	Migrate   func(ctx context.Context, databaseURL string) error
	Launch    func(ctx context.Context, p Program) error // runs until ctx ends
	Out       io.Writer
	Live      bool // Out is a terminal: progress is one line that changes
}

// ErrUnbalanced is the error of an account that does not add up.
var ErrUnbalanced = errors.New("the account does not add up")

// Run shows the whole demo. The error is [ErrUnbalanced] when the account does not add up.
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
			scr.say("stopped    everything is shut down and cleaned up")
		}
	}()
	scr.say("Docket demo: no Docker, no servers, nothing to set up.")
	scr.say("kafka      kfake, an in-process stand-in that speaks Kafka's protocol; it shows nothing of replication or disks")
	swept, err := sweep(ctx, filepath.Dir(cfg.Dir))
	if err != nil {
		return fmt.Errorf("clean up after an earlier demo: %w", err)
	}
	if swept > 0 {
		scr.say("cleaned    up after earlier demos that were killed: %d", swept)
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
		cfg: cfg, screen: scr, database: database, began: began, ledger: conservation.NewLedger(),
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
