package tree

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
	"docket/internal/programs/collect"
	"docket/internal/programs/consume"
	"docket/internal/programs/democmd"
	"docket/internal/programs/replay"
	"docket/internal/service/config"
	"docket/internal/testkit/readertest"
)

var update = flag.Bool("update", false, "write testdata again")

const planted = "hunter2marker"

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// reset empties it in place, as a test may be looking at it.
func (b *buffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

// trial is a dry run whose results are told beforehand.
type trial struct {
	result worker.TrialResult
	err    error
	asked  []string
}

func (t *trial) Run(_ context.Context, f ledger.Filter, _ int64, progress func(done, total int64)) (worker.TrialResult, error) {
	t.asked = append(t.asked, pick.Described(f))
	progress(t.result.Total, t.result.Total)
	return t.result, t.err
}

func (t *trial) RunIDs(_ context.Context, ids []string, progress func(done, total int64)) (worker.TrialResult, error) {
	t.asked = append(t.asked, ids...)
	progress(t.result.Total, t.result.Total)
	return t.result, t.err
}

func (t *trial) RunValue(_ context.Context, value []byte) (worker.TrialResult, error) {
	t.asked = append(t.asked, string(value))
	return t.result, t.err
}

// world is the surroundings of a call. The zero value is a pipe, a good URL and a ledger with a few dead letters.
type world struct {
	failing  bool              // the check and the verification of the desk
	verified []api.VerifyScope // by the desk
	prove    func() error      // of an archive, by the desk
	book     *book
	store    *readertest.Store
	states   *readertest.States // nil: no desk keeps them
	joined   state.Store        // those of several shards, in the place of states
	many     reader.Store       // several shards in the place of store; nil: there are none
	out, err buffer             // of the last call
	trial    *trial
	days     archive.Table
	calendar func(context.Context) (archive.Calendar, error) // nil: there is none
	letters  archive.LettersTable                            // nil: nothing waits
	noted    func() []archive.Noted                          // archives of dead letters; nil: there are none
	complete *complete.Answers                               // nil: nothing is said of it
	topics   func() (lookup.Topics, func(), error)
	spools   []string
	shelf    archive.Shelf
	opened   []string       // places that were opened, without a shelf
	left     []archive.Left // days that left the table
	// unarchived says that nothing ever was archived.
	unarchived bool
	both       func(*readertest.Store, *cold.Days) reader.Store // joins the table with archived days; nil: the table alone
	horizon    []worker.HorizonLine
	backlog    func(ctx context.Context) (worker.Backlog, error) // nil: all dead letters are in the ledger
	terminal   term.Terminal
	environ    []string
	bare       bool   // no setting is set
	remote     string // a desk is asked in place of the database, by a caller with this role; empty: none
	desk       string // the URL of that desk
	token      string // the file with the caller's token
	stdin      string
	edit       func(ctx context.Context, argv []string) error
	page       func(ctx context.Context, argv []string, text []byte) error
	signals    chan os.Signal
	room       *int // bytes that standard output takes in a call; nil: any number
}

type result struct {
	code     int
	out, err string
}

func person(width int) term.Terminal {
	return term.Terminal{In: true, Out: true, Err: true, Width: width}
}

// filled has the defaults of a world.
func (w *world) filled() {
	if w.book == nil {
		w.book = newBook(deadLetters()...)
	}
	if w.letters == nil {
		w.letters = lettersClosed{}
	}
	if w.store == nil {
		w.store = decisions(0)
	}
	if w.topics == nil {
		w.topics = kafkaOf{}.open
	}
}

func (w *world) call(args ...string) result {
	w.filled()
	w.out.reset()
	w.err.reset()
	var out, err io.Writer = &w.out, &w.err
	if w.room != nil {
		out = &fullDisk{out, *w.room}
	}
	environ := []string{"NO_COLOR=1"}
	if w.remote != "" {
		args = append(append([]string{}, args...), "--server", w.desk, "--token-file", w.token)
	}
	if !w.bare && w.remote == "" {
		environ = append(environ, "DOCKET_DATABASE_URL=postgres://u:"+planted+"@127.0.0.1:1/x")
	}
	code := Main(cli.Env{
		Program: config.Desk, Args: args, Stdout: out, Stderr: err, Signals: w.signals, Environ: append(environ, w.environ...),
	}, frame.Options{
		Stdin: strings.NewReader(w.stdin), Terminal: w.terminal, Now: func() time.Time { return now }, Edit: w.edit, Page: w.page,
		Open: func(_ cli.Env, settings config.Settings) (*frame.System, error) { return w.open(settings), nil },
		Desk: func(env cli.Env, args []string) int {
			_, _ = io.WriteString(env.Stdout, "desk "+strings.Join(args, " "))
			return 7
		},
		Programs: programs(), Demo: democmd.Command(),
	})
	return result{code, w.out.String(), w.err.String()}
}

func (w *world) lettersNoted(context.Context) ([]archive.Noted, error) {
	if w.noted == nil {
		return nil, nil
	}
	return w.noted(), nil
}

func (w *world) leftDays(context.Context) ([]archive.Left, error) { return w.left, nil }

// open makes the system of the world.
func (w *world) open(settings config.Settings) *frame.System {
	sys := &frame.System{Left: w.leftDays, Noted: w.lettersNoted, Book: w.book, Complete: w.complete, Calendar: w.calendar, Decisions: w.store, Days: w.days, Letters: w.letters, Shelf: func(where string) (archive.Shelf, error) {
		w.opened = append(w.opened, where)
		return archive.Dir(where), nil
	}, Horizon: func(context.Context, time.Time) ([]worker.HorizonLine, error) { return w.horizon, nil }}
	sys.Backlog = func(ctx context.Context) (worker.Backlog, error) {
		if w.backlog == nil {
			return worker.Backlog{}, nil
		}
		return w.backlog(ctx)
	}
	sys.States = &readertest.States{}
	if w.states != nil {
		sys.States = w.states
	}
	if w.joined != nil {
		sys.States = w.joined
	}
	if w.trial != nil {
		sys.Trial = w.trial
	}
	if w.shelf != nil {
		sys.Shelf = func(string) (archive.Shelf, error) { return w.shelf, nil }
	}
	days := cold.New(cold.Config{Where: settings.ArchiveTo, Table: "decision_logs", LineBytes: 1 << 20, Shelf: func() (archive.Shelf, error) { return sys.Shelf(settings.ArchiveTo) }, Left: w.leftDays})
	if w.both != nil {
		sys.Decisions = w.both(w.store, days)
	}
	sys.Look = &lookup.Look{
		Settings: settings, Rows: w.store.ByID, Book: w.book, Days: days, Shelf: sys.Shelf, Topics: w.topics, Spools: w.spools,
		Now: func() time.Time { return now },
	}
	if w.unarchived {
		sys.Look.Archived = func(context.Context) (bool, error) { return false, nil }
	}
	if w.many != nil {
		sys.Decisions, sys.Look.Rows = w.many, w.many.ByID
	}
	return sys
}

// programs are those of docket.
func programs() []frame.Program {
	return []frame.Program{
		{Name: "consume", Text: "Store decision logs from Kafka in Postgres", Env: consume.Env, Commands: consume.Commands},
		{Name: "replay", Text: "Replay parked records when they are due", Env: replay.Env, Commands: replay.Commands},
		{Name: "collect", Text: "Accept decision logs that OPA uploads, and write them to Kafka", Env: collect.Env, Commands: collect.Commands},
	}
}

// golden holds a text against the one in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as it was (-update writes it again):\n%s", name, diff)
	}
}

// quiet fails where a text could control a terminal.
func quiet(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			t.Errorf("byte %d is %U: %q", i, r, text[max(0, i-20):min(len(text), i+20)])
			return
		}
	}
}

var errAway = errors.New("the database is away")

// decisions is a store with n of them.
func decisions(n int) *readertest.Store {
	s := &readertest.Store{Now: func() time.Time { return now }}
	s.Add(readertest.Decisions(n, now)...)
	return s
}
