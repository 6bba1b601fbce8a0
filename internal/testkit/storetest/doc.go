// Package storetest has the promises of package postgres for any server, as cases. They run against a real server and
// its model, so that the two cannot differ. A [Server] starts the server and sets its faults.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
)

// Fault is an error that a server raises for a row. Its message and detail quote the row.
type Fault struct {
	Code                      string // SQLSTATE
	Constraint, Column, Table string
}

// Cut is the place where the connection breaks, once.
type Cut string

// The places of a transaction where a connection can break.
const (
	BeforeInsert Cut = "before the insert"
	InCopy       Cut = "in the middle of COPY"
	AfterInsert  Cut = "after the insert"
	BeforeCommit Cut = "commit not applied"
	AfterCommit  Cut = "commit applied"
)

// Server is a server with one empty table, for one case. The effect of a method ends when its returned function is
// called, or the case ends.
type Server interface {
	// Config returns the settings to connect.
	Config() db.Config
	// Refuse raises f before a row with this decision id is inserted; with an empty id, before every row.
	Refuse(t testing.TB, id string, f Fault) (heal func())
	// Check adds a CHECK with this name that refuses rows with these decision ids.
	Check(t testing.TB, name string, ids ...string)
	// RefuseLate raises code when deferred constraints are checked.
	RefuseLate(t testing.TB, code string)
	// Slow makes an insert take d, SlowCommit a commit.
	Slow(t testing.TB, d time.Duration) (heal func())
	SlowCommit(t testing.TB, d time.Duration)
	// Break changes the table so that an insert fails with this code: 42P01, 42703, 42P10 or 23502.
	Break(t testing.TB, code string)
	// NoCopy makes the table take rows only by INSERT, for the settings that it returns.
	NoCopy(t testing.TB) db.Config
	Lock(t testing.TB) (unlock func())
	// ReadOnly makes the node refuse writes, also in open sessions, even if it ends them.
	ReadOnly(t testing.TB) (heal func())
	// Kill ends the open sessions, as an administrator does.
	Kill(t testing.TB)
	Cut(t testing.TB, at Cut)
	// Busy waits until an insert is running.
	Busy(t testing.TB)
	// Raw returns raw of the row with this identity, as any text that is equal as JSON; empty if there is none.
	Raw(t testing.TB, id string, at time.Time) string
	Count(t testing.TB) int
	// Mask adds a trigger to the table that changes every payload before it is stored. Erase changes stored payloads.
	// Forget removes columns that earlier releases did not store.
	Mask(t testing.TB)
	Erase(t testing.TB)
	Forget(t testing.TB)
}

// Case is one promise.
type Case struct {
	Name string
	Run  func(t *testing.T, s Server)
}

// OfCopy reports whether the promise needs COPY.
func (c Case) OfCopy() bool {
	switch c.Name {
	case "a stored decision is known by its bytes", "an error of COPY says at which row it was",
		"a bad row among some that are there", "a connection cut: " + string(InCopy):
		return true
	}
	return false
}

// OfTables reports whether the promise needs a table: a view has no CHECK to foresee.
func (c Case) OfTables() bool { return c.Name == "what a CHECK refuses is foreseen" }

// OfCommit reports whether the promise needs deferred triggers to run in COMMIT. Where rows are looked for they ran before.
func (c Case) OfCommit() bool { return c.Name == "our deadline holds where the server has none" }

// Cases returns all cases. Each needs a server of its own, and leaves no goroutine.
func Cases() []Case {
	var all []Case
	for _, some := range [][]Case{storing(), twins(), comparing(), knowing(), refusing(), breaking(), copying(), waiting(), vanishing(), speaking(), asking()} {
		all = append(all, some...)
	}
	return all
}

const (
	stored      = pipeline.Stored
	present     = pipeline.Present
	conflicting = pipeline.Conflicting
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

// marker is in every refused row, and must be in no error.
const marker = "do-not-tell"

func open(t testing.TB, s Server, change ...func(*db.Config)) *store.Store {
	t.Helper()
	cfg := s.Config()
	for _, c := range change {
		c(&cfg)
	}
	db, err := store.Open(cfg, zerolog.Nop())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(db.Close)
	return db
}

func within(d time.Duration) func(*db.Config) {
	return func(c *db.Config) { c.StoreTimeout = d }
}

func row(id string, at time.Time, raw string) pipeline.Row {
	return pipeline.Row{Topic: "decision-logs", Partition: 3, Offset: 42, Index: 1,
		Log: &decision.Log{ID: id, Time: at, Raw: []byte(raw)}}
}

func given[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }

// full is a row with a value in every column.
func full(id string, at time.Time, padding int) pipeline.Row {
	r := row(id, at, "")
	r.Log.Path, r.Log.Service = given("shop/orders/allow"), given("shop")
	r.Log.RequestedBy, r.Log.OPAID, r.Log.OPAVersion = given("10.0.0.1:5000"), given("opa-1"), given("1.4.2")
	r.Log.Allowed, r.Log.ReqID = given(true), given(int64(77))
	r.Log.Labels, r.Log.Bundles = []byte(`{"id":"opa-1"}`), []byte(`{"shop":{"revision":"r7"}}`)
	r.Log.Raw = fmt.Appendf(nil, `{"decision_id":%q,"pad":%q}`, id, strings.Repeat("x", padding))
	return r
}

func save(t testing.TB, db *store.Store, rows ...pipeline.Row) []pipeline.Outcome {
	t.Helper()
	out, err := db.Store(context.Background(), rows, false)
	if err != nil {
		t.Fatalf("store: %v", err)
	}
	return out
}

// refused stores rows and wants an error with this code.
func refused(t testing.TB, db *store.Store, want string, rows ...pipeline.Row) error {
	t.Helper()
	out, err := db.Store(context.Background(), rows, false)
	return wantCode(t, out, err, want)
}

// ended is [wantCode] of what do returns, for an act that the server is to end before we do. Between the two is a fifth of the time. If
// the machine pauses for so long, we end it: then do is tried again, three times in all.
func ended(t testing.TB, want string, do func() (out any, err error)) error {
	t.Helper()
	for try := 1; ; try++ {
		out, err := do()
		if try == 3 || err == nil || errclass.Classify(err).Code != "timeout" {
			return wantCode(t, out, err, want)
		}
	}
}

func wantCode(t testing.TB, out any, err error, want string) error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error but %v, want %s", out, want)
	}
	if got := errclass.Classify(err).Code; got != want {
		t.Fatalf("code %s, want %s: %v", got, want, err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v", err, err), marker) {
		t.Fatalf("the error tells a row: %v", err)
	}
	return err
}

// wantKilled checks the error for a writer whose session was killed. It is the server's error, or a lost connection
// if the writer was still sending.
func wantKilled(t testing.TB, err error) {
	t.Helper()
	want := "57P01"
	if code := errclass.Classify(err).Code; code == "network" {
		want = code
	}
	wantCode(t, nil, err, want)
}

func same(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}
