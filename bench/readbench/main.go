// Command readbench asks a Postgres full of decisions the usual questions, and prints their times. build/bench starts
// the server. With -fill 0 it uses the decisions that are there.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/sample"
)

//go:embed fill.sql
var fillSQL string

func main() {
	url := flag.String("url", "", "of the database")
	n := flag.Int("fill", 10_000_000, "decisions to make first")
	days := flag.Int("days", 30, "over which they lie")
	runs := flag.Int("runs", 200, "of each question")
	only := flag.String("only", "", "questions of this regular expression")
	rounds := flag.Int("cost", 0, "rounds of storing 20000 rows with and without the indexes, and nothing else")
	flag.Parse()
	if *rounds > 0 {
		if err := onlyCost(context.Background(), *url, *rounds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(context.Background(), *url, *n, *days, *runs, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, n, days, runs int, only string) error {
	db, err := store.Open(db.Config{URL: url, StoreTimeout: 10 * time.Minute}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer db.Close()
	if n > 0 {
		if err := fill(ctx, db, url, n, days); err != nil {
			return err
		}
	}
	store := historydb.NewReader(db.DB)
	for began := time.Now(); ; { // as the desk does
		counted, err := store.Count(ctx)
		if err != nil {
			return err
		}
		if counted == 0 {
			fmt.Fprintf(os.Stderr, "counted in %s\n", time.Since(began).Round(time.Second))
			break
		}
	}
	began := time.Now()
	made, err := store.Index(ctx) // as the desk does
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d indexes of days that are over in %s\n", made, time.Since(began).Round(time.Second))
	if made > 0 {
		if _, err := historydb.NewReader(db.DB).Count(ctx); err != nil {
			return err
		}
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return ask(ctx, store, conn, days, runs, only)
}

// onlyCost measures what the indexes cost in a database of its own.
func onlyCost(ctx context.Context, url string, rounds int) error {
	db, err := store.Open(db.Config{URL: url, StoreTimeout: time.Minute}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := schema.New(db.DB).Migrate(ctx); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := seed(ctx, conn); err != nil {
		return err
	}
	return cost(ctx, conn, rounds, 20_000, costVariants())
}

// made is how many days are made row by row; the others repeat them.
const made = 3

func fill(ctx context.Context, db *store.Store, url string, n, days int) error {
	if _, err := schema.New(db.DB).Migrate(ctx); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := seed(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT bench_days((now() AT TIME ZONE 'UTC')::date - $1::int - 1, $1::int + 1)`, days); err != nil {
		return err
	}
	first := time.Now().Truncate(time.Hour).Add(-time.Duration(days) * 24 * time.Hour)
	for day := range days {
		began := time.Now()
		var err error
		if day < made {
			_, err = conn.Exec(ctx, `SELECT bench_fill($1::timestamptz + interval '1 day' * $2::int, interval '1 day', $2::bigint * $3, $3::bigint)`, first, day, n/days)
		} else {
			_, err = conn.Exec(ctx, `SELECT bench_repeat($1::timestamptz + interval '1 day' * $2::int, interval '1 day', interval '1 day' * $3::int, $3::bigint * $4)`,
				first, day%made, day-day%made, n/days)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "day %d of %d, %s\n", day+1, days, time.Since(began).Round(time.Second))
	}
	_, err = conn.Exec(ctx, `VACUUM (ANALYZE) decision_logs`)
	return err
}

// seed makes what rows are made of.
func seed(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, fillSQL); err != nil {
		return err
	}
	decoder := new(decision.Decoder)
	for i, line := range sample.DecisionLogs() {
		record, refused := decoder.Decode(line, 1<<20)
		if refused != nil {
			return refused
		}
		if _, err := conn.Exec(ctx, `INSERT INTO bench_seed VALUES ($1, $2, $3::jsonb) ON CONFLICT DO NOTHING`, i+1, record.Parts[0].Log.Path.V, string(line)); err != nil {
			return err
		}
	}
	return nil
}

// question is something that people ask, with values of a decision that is there.
type question struct {
	name string
	ask  func(ctx context.Context, like reader.Decision, random *rand.Rand) (int, error)
}

// cpuSQL is what the server's processes for others have worked so far, in nanoseconds.
const cpuSQL = `SELECT coalesce(sum(split_part(pg_read_file('/proc/' || pid || '/schedstat', true), ' ', 1)::int8), 0)::int8 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`

func ask(ctx context.Context, store *historydb.Reader, conn *pgx.Conn, days, runs int, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	newest, err := store.Search(ctx, reader.Filter{}, reader.Page{Limit: 1})
	if err != nil || len(newest.Decisions) == 0 {
		return fmt.Errorf("there is nothing to ask for: %w", err)
	}
	now := newest.Decisions[0].Time
	search := func(f reader.Filter, limit int) (int, error) {
		found, err := store.Search(ctx, f, reader.Page{Limit: limit})
		return len(found.Decisions), err
	}
	day, month := now.Add(-24*time.Hour), now.Add(-time.Duration(days)*24*time.Hour)
	host := func(d reader.Decision) string {
		for i := len(*d.RequestedBy) - 1; ; i-- {
			if (*d.RequestedBy)[i] == ':' {
				return (*d.RequestedBy)[:i]
			}
		}
	}
	var followed reader.Tail
	questions := []question{
		{"what is of one moment", func(ctx context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			found, err := store.Search(ctx, reader.Filter{Since: d.Time, Until: d.Time.Add(time.Microsecond)}, reader.Page{Limit: 10})
			return len(found.Decisions), err
		}},
		{"a decision by its id", func(ctx context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			found, err := store.ByID(ctx, d.ID)
			return len(found), err
		}},
		{"the newest page of all", func(context.Context, reader.Decision, *rand.Rand) (int, error) { return search(reader.Filter{}, 50) }},
		{"a page deep inside", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			return search(reader.Filter{Until: d.Time}, 50)
		}},
		{"the newest page of a path", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			return search(reader.Filter{Paths: []string{*d.Path}}, 50)
		}},
		{"denied on a path in 24 h", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			return search(reader.Filter{Since: day, Paths: []string{*d.Path}, Verdicts: []reader.Verdict{reader.Denied}}, 50)
		}},
		{"the newest page of a service", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			return search(reader.Filter{Services: []string{*d.Service}}, 50)
		}},
		{"a host, over all days", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			return search(reader.Filter{Since: month, RequestedBy: []string{host(d)}}, 50)
		}},
		{"a label", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			var labels map[string]string
			_ = json.Unmarshal(d.Labels, &labels)
			return search(reader.Filter{Labels: map[string]string{"app": labels["app"], "region": labels["region"]}}, 50)
		}},
		{"a value of input on a path in 24 h", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			var raw struct {
				Input struct{ User json.RawMessage }
			}
			_ = json.Unmarshal(d.Raw, &raw)
			return search(reader.Filter{Since: day, Paths: []string{*d.Path}, Matches: []reader.Match{{In: "input", Pointer: "/user", Value: raw.Input.User}}}, 50)
		}},
		{"before a decision: same host and path", func(_ context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			return search(reader.Filter{Until: d.Time, Since: d.Time.Add(-24 * time.Hour), Paths: []string{*d.Path}, RequestedBy: []string{host(d)}}, 3)
		}},
		{"after a decision: same host and path", func(ctx context.Context, d reader.Decision, _ *rand.Rand) (int, error) {
			found, err := store.Search(ctx, reader.Filter{Since: d.Time, Until: d.Time.Add(24 * time.Hour), Paths: []string{*d.Path}, RequestedBy: []string{host(d)}}, reader.Page{Limit: 3, Oldest: true})
			return len(found.Decisions), err
		}},
		{"what came since, as one who follows asks", func(ctx context.Context, _ reader.Decision, _ *rand.Rand) (int, error) {
			found, next, err := store.Follow(ctx, reader.Filter{}, followed, 100, false)
			followed = next
			return len(found), err
		}},
		{"rates by path over all days, by the day", func(ctx context.Context, _ reader.Decision, _ *rand.Rand) (int, error) {
			stats, err := store.Stats(ctx, reader.StatsQuery{Since: month.Truncate(24 * time.Hour), Until: now, Step: 24 * time.Hour, ByPath: true})
			return len(stats), err
		}},
	}
	random := rand.New(rand.NewPCG(1, 1))
	likes := make([]reader.Decision, runs)
	for i := range likes {
		found, err := store.Search(ctx, reader.Filter{Until: month.Add(time.Duration(random.Int64N(int64(now.Sub(month)))))}, reader.Page{Limit: 1, Payload: true})
		if err != nil {
			return err
		}
		if len(found.Decisions) == 0 || found.Decisions[0].Path == nil || found.Decisions[0].RequestedBy == nil {
			likes[i] = likes[max(i-1, 0)]
			continue
		}
		likes[i] = found.Decisions[0]
	}
	fmt.Println("| question | first time: p50, p95 ms | again: p50, p95 ms | found, on average | p95 under 100 ms |\n|---|---|---|---|---|")
	for _, q := range questions {
		if !wanted.MatchString(q.name) {
			continue
		}
		var times [2][]time.Duration
		sum := 0
		var cpu, cpuBefore int64
		if err := conn.QueryRow(ctx, cpuSQL).Scan(&cpuBefore); err != nil {
			return err
		}
		for pass := range times {
			for _, like := range likes {
				began := time.Now()
				n, err := q.ask(ctx, like, random)
				if err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				times[pass] = append(times[pass], time.Since(began))
				sum += n
			}
			slices.Sort(times[pass])
		}
		if err := conn.QueryRow(ctx, cpuSQL).Scan(&cpu); err != nil {
			return err
		}
		// Beside other work times say little, this says more.
		fmt.Fprintf(os.Stderr, "%s: %.1f ms of the server's CPU each\n", q.name, float64(cpu-cpuBefore)/1e6/float64(2*runs))
		at := func(pass, percent int) float64 {
			return float64(times[pass][(runs-1)*percent/100].Microseconds()) / 1000
		}
		met := "yes"
		if at(0, 95) >= 100 || at(1, 95) >= 100 {
			met = "NO"
		}
		fmt.Printf("| %s | %.1f, %.1f | %.1f, %.1f | %.1f | %s |\n", q.name, at(0, 50), at(0, 95), at(1, 50), at(1, 95), float64(sum)/float64(2*runs), met)
	}
	return nil
}
