//go:build integration

package historydb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
)

// countLine is one line as the function takes it: so many allowed decisions.
type countLine struct {
	hour          time.Time
	path, service *string
	allowed       int64
}

// names is a database whose counts are added to by hand.
type names struct {
	*pgtest.DB
	t    *testing.T
	conn *pgx.Conn
}

func newNames(t *testing.T, db *pgtest.DB) *names {
	t.Helper()
	return &names{DB: db, t: t, conn: pgxConnect(t, db.URL)}
}

// allowedAt is a line of a path, whose service is its first segment.
func allowedAt(hour time.Time, path string, n int64) countLine {
	service, _, _ := strings.Cut(path, "/")
	return countLine{hour: hour, path: &path, service: &service, allowed: n}
}

func (c *names) keep(lines ...countLine) {
	c.t.Helper()
	var hours []time.Time
	var paths, services []*string
	var allowed []int64
	for _, l := range lines {
		hours, paths, services, allowed = append(hours, l.hour), append(paths, l.path), append(services, l.service), append(allowed, l.allowed)
	}
	_, err := c.conn.Exec(c.t.Context(), `SELECT decision_counts_keep(array_agg(ROW (hour, path, service, allowed, 0, 0, 0, 0)::decision_counts))
		FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::int8[]) AS l (hour, path, service, allowed)`, hours, paths, services, allowed)
	check(c.t, err)
}

// counted is what a table has by path, of all hours or days.
func (c *names) counted(table string) map[string]int64 {
	c.t.Helper()
	rows, err := c.conn.Query(c.t.Context(), `SELECT coalesce(service, '-') || ' ' || coalesce(path, '-'), sum(allowed)::bigint FROM `+table+` GROUP BY 1`)
	check(c.t, err)
	got := map[string]int64{}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		got[name] = n
		return nil
	})
	check(c.t, err)
	return got
}

// both checks that the hours and the days have the same, and returns it.
func (c *names) both() map[string]int64 {
	c.t.Helper()
	hours, days := c.counted("decision_counts"), c.counted("decision_counts_days")
	if fmt.Sprint(hours) != fmt.Sprint(days) {
		c.t.Fatalf("by the hour %v\nby the day %v", hours, days)
	}
	return hours
}

// most replaces how many names there may be.
func (c *names) most(ofService, inAll int) {
	c.t.Helper()
	c.Exec(c.t, fmt.Sprintf(`CREATE OR REPLACE FUNCTION decision_counts_most(OUT of_service int, OUT in_all int) LANGUAGE sql STABLE AS $$ SELECT %d, %d $$`, ofService, inAll))
}

// invented are n paths of a service that nobody has seen before.
func invented(hour time.Time, service string, n int) (lines []countLine) {
	for i := range n {
		lines = append(lines, allowedAt(hour, fmt.Sprintf("%s/invented%05d", service, i), 3))
	}
	return lines
}

func TestCountNames_InventedPaths(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	c.keep(allowedAt(noon, "authz/allow", 1), allowedAt(noon, "authz/deny", 1), allowedAt(noon, "other/allow", 1))
	for hour := range 3 { // the attacker is the first of each hour, and has more decisions than anybody
		at := noon.Add(time.Duration(hour+1) * time.Hour)
		c.keep(invented(at, "authz", 5000)...)
		c.keep(allowedAt(at, "authz/allow", 1), allowedAt(at, "authz/deny", 1), allowedAt(at, "authz/new", 1), allowedAt(at, "other/new", 1))
	}
	got := c.both()
	if len(got) != 200+1+2 || got["authz authz/allow"] != 4 || got["authz authz/deny"] != 4 || got["authz authz/new"] != 0 || got["other other/new"] != 3 || got["other other/allow"] != 1 {
		t.Errorf("%d lines: %v", len(got), got)
	}
	if want := int64(3*3*(5000-198) + 3); got["authz (other)"] != want {
		t.Errorf("%d under (other), want %d", got["authz (other)"], want)
	}
}

// The same from the rows on: rows are stored, counted and asked for.
func TestCountNames_Stored(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	counter := historydb.NewReader(open(t, d.URL, 20*time.Second).DB).CountTo()
	hour, known := noon.Truncate(time.Hour), "'http/allow'"
	since := hour.Add(-time.Hour)
	store := func(prefix, path string, n int, at time.Time) {
		t.Helper()
		d.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, service, allowed, raw, source_topic, source_partition, source_offset, source_index)
			SELECT '%s' || n, '%s', %s, 'http', true, '{"result":true}', 't', 0, n, 0 FROM generate_series(1, %d) AS n`, prefix, at.Format(time.RFC3339), path, n))
	}
	count := func(sum int64) {
		t.Helper()
		var counted int64
		for deadline := time.Now().Add(2 * time.Minute); counted < sum; {
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d are counted", counted, sum)
			}
			n, err := counter.Count(t.Context())
			check(t, err)
			counted += n
		}
	}
	store("real", known, 10, since)
	count(10)
	store("invented", "'http/x' || n", 5000, hour)
	store("later", known, 10, hour)
	count(5010)
	lines, err := counter.Stats(t.Context(), reader.StatsQuery{Since: since, Until: hour.Add(time.Hour), Step: 2 * time.Hour, ByPath: true})
	check(t, err)
	var n int64
	for _, l := range lines {
		n += l.Counts[reader.Allowed]
	}
	if last := lines[len(lines)-1]; len(lines) != 201 || n != 5020 || lines[0].Name != "http/allow" || lines[0].Counts[reader.Allowed] != 20 || last.Name != reader.OtherPaths || last.Counts[reader.Allowed] != 5000-199 {
		t.Errorf("%d lines, %d decisions, first %+v, last %+v", len(lines), n, lines[0], last)
	}
}

// A path without a line of its own is in the line of the others. Some callers of OPA write paths with slashes in front.
func TestCountNames_FilterByPathWithSlashes(t *testing.T) {
	t.Parallel()
	for _, slashes := range []string{"", "/", "//"} {
		t.Run("after "+strconv.Quote(slashes), func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			counter := historydb.NewReader(open(t, d.URL, 20*time.Second).DB).CountTo()
			hour := noon.Truncate(time.Hour)
			d.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, service, allowed, raw, source_topic, source_partition, source_offset, source_index)
				SELECT 'd' || n, '%s', '%sauthz/p' || n, 'authz', false, '{"result":false}', 't', 0, n, 0 FROM generate_series(1, 300) AS n`, hour.Format(time.RFC3339), slashes))
			for counted := int64(0); counted < 300; {
				n, err := counter.Count(t.Context())
				check(t, err)
				counted += n
			}
			asked := func(paths ...string) (names []string) {
				t.Helper()
				lines, err := counter.Stats(t.Context(), reader.StatsQuery{Since: hour, Until: hour.Add(time.Hour), Step: time.Hour, ByPath: true, Paths: paths})
				check(t, err)
				for _, l := range lines {
					names = append(names, l.Name)
				}
				return names
			}
			var without string // a line of its own
			own := asked()
			for n := range 300 {
				if path := fmt.Sprint(slashes, "authz/p", n+1); !slices.Contains(own, path) {
					without = path
				}
			}
			if without == "" || !slices.Contains(asked(without), reader.OtherPaths) {
				t.Errorf("asked for %q: %q", without, asked(without))
			}
			if got := asked(slashes + "other/x"); slices.Contains(got, reader.OtherPaths) {
				t.Errorf("asked for another service: %q", got)
			}
			if got := asked(slashes + "authz/*"); !slices.Contains(got, reader.OtherPaths) {
				t.Errorf("asked for all of the service: %q", got)
			}
			if got := asked("/*"); slashes != "" && !slices.Contains(got, reader.OtherPaths) {
				t.Errorf("asked for all with a slash in front: %q", got)
			}
		})
	}
}

// Services are invented as easily as paths.
func TestCountNames_InventedServices(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	c.keep(allowedAt(noon, "authz/allow", 1))
	var lines []countLine
	for i := range 5000 {
		lines = append(lines, allowedAt(noon, fmt.Sprintf("s%05d/allow", i), 3))
	}
	c.keep(append(lines, allowedAt(noon, "authz/late", 1))...)
	c.keep(append(lines, allowedAt(noon, "authz/allow", 1), allowedAt(noon, "authz/late", 1))...)
	got := c.both()
	if len(got) != 2000+2 || got["authz authz/allow"] != 2 || got["authz (other)"] != 2 || got["(other) (other)"] != 2*3*(5000-1999) {
		t.Errorf("%d lines, real %d, of authz %d, of nobody %d", len(got), got["authz authz/allow"], got["authz (other)"], got["(other) (other)"])
	}
	var most int
	c.Query(t, `SELECT max(n) FROM (SELECT count(*) AS n FROM decision_counts GROUP BY hour, path, service) AS l`, &most)
	if most > 2 {
		t.Errorf("a name has %d lines of one hour after two rounds", most)
	}
}

func TestCountNames_LongPaths(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	long, edge, wide := "authz/"+strings.Repeat("x", 1<<20), "authz/"+strings.Repeat("x", 994), "authz/"+strings.Repeat("é", 498)
	c.keep(allowedAt(noon, "authz/allow", 1), allowedAt(noon, long, 2), allowedAt(noon, edge, 3), allowedAt(noon, wide, 4), allowedAt(noon, strings.Repeat("s", 5000), 5))
	got := c.both()
	want := map[string]int64{"authz authz/allow": 1, "authz " + edge: 3, "authz (other)": 6, "(other) (other)": 5}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d lines; %d of 1,000 bytes, %d of the others", len(got), got["authz "+edge], got["authz (other)"])
	}
}

// A path that is called (other) joins those that have no name, and takes none.
func TestCountNames_LiteralOther(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	empty, other, authz := "", "(other)", "authz"
	c.keep(allowedAt(noon, "(other)", 1), allowedAt(noon, "(other)/x", 2), allowedAt(noon, "authz/allow", 4), countLine{noon, &other, &authz, 8},
		countLine{noon, nil, nil, 16}, countLine{noon, &empty, nil, 32}, countLine{noon, nil, &authz, 64})
	want := map[string]int64{"(other) (other)": 1, "(other) (other)/x": 2, "authz authz/allow": 4, "authz (other)": 8, "- -": 16, "- ": 32, "authz -": 64}
	if got := c.both(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	var n int
	c.Query(t, `SELECT count(*) FROM decision_counts_names WHERE path = '(other)'`, &n)
	same(t, n, 0)
}

// A name is free again once it was not counted for more than 7 days, and not before.
func TestCountNames_Forgotten(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	c.most(2, 100)
	c.keep(allowedAt(noon, "a/x", 1), allowedAt(noon, "a/y", 1))
	age := func(path string, days int) {
		c.Exec(t, fmt.Sprintf(`UPDATE decision_counts_names SET seen = (now() AT TIME ZONE 'UTC')::date - %d WHERE path = '%s'`, days, path))
	}
	age("a/x", 7)
	age("a/y", 7)
	c.keep(allowedAt(noon, "a/z", 1), allowedAt(noon, "a/y", 1)) // y is seen
	age("a/x", 8)
	c.keep(allowedAt(noon, "a/z", 1))
	c.keep(allowedAt(noon, "a/x", 1), allowedAt(noon, "a/z", 1))
	want := map[string]int64{"a a/x": 1, "a a/y": 2, "a a/z": 2, "a (other)": 2}
	if got := c.both(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	var fresh int
	c.Query(t, `SELECT count(*) FROM decision_counts_names WHERE seen >= (now() AT TIME ZONE 'UTC')::date - 1`, &fresh) // at midnight y is of yesterday
	same(t, fresh, 2)
}

// Whatever comes in whatever order: the sums are exact, names are few, and what was named once keeps its name.
func TestCountNames_SumsAreExact(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	c.most(3, 7)
	random := rand.New(rand.NewPCG(1, 6))
	sums, named := map[time.Time]int64{}, map[string]bool{}
	for round := range 60 {
		var lines []countLine
		for range random.IntN(40) {
			hour := noon.Add(time.Duration(random.IntN(72)) * time.Hour)
			l := allowedAt(hour, fmt.Sprintf("s%d/p%d", random.IntN(5), random.IntN(8)), int64(random.IntN(4)))
			if random.IntN(10) == 0 {
				l = []countLine{allowedAt(hour, "(other)", 1), {hour: hour, allowed: 2}}[random.IntN(2)]
			}
			lines = append(lines, l)
			sums[hour] += l.allowed
		}
		c.keep(lines...)
		rows, err := c.conn.Query(t.Context(), `SELECT service || ' ' || path FROM decision_counts_names`)
		check(t, err)
		have, err := pgx.CollectRows(rows, pgx.RowTo[string])
		check(t, err)
		of := map[string]int{}
		for _, name := range have {
			service, _, _ := strings.Cut(name, " ")
			of[service]++
		}
		for name := range named {
			if !slices.Contains(have, name) {
				t.Fatalf("round %d: %s has lost its name", round, name)
			}
		}
		for _, name := range have {
			named[name] = true
		}
		for service, n := range of {
			if n > 3 || len(have) > 7 {
				t.Fatalf("round %d: %d names of %s, %d in all", round, n, service, len(have))
			}
		}
		for name, n := range c.both() {
			if _, path, _ := strings.Cut(name, " "); path != "(other)" && path != "-" && !named[name] {
				t.Fatalf("round %d: %s has %d, and no name", round, name, n)
			}
		}
	}
	for hour, want := range sums {
		var n int64
		check(t, c.conn.QueryRow(t.Context(), `SELECT coalesce(sum(allowed), 0)::bigint FROM decision_counts WHERE hour = $1`, hour).Scan(&n))
		if n != want {
			t.Errorf("%s: %d, want %d", hour, n, want)
		}
	}
}

// A table that has many paths from before gives names to those that were there on the most days.
func TestCountNames_Migration(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	b, err := migrations.FS.ReadFile("00016_paths.sql")
	check(t, err)
	up, down, ok := strings.Cut(string(b), "-- +goose Down")
	if !ok {
		t.Fatal("no way down")
	}
	c := newNames(t, d)
	d.Exec(t, down)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	c.keep(invented(today, "authz", 5000)...)
	for day := range 6 {
		c.keep(allowedAt(today.AddDate(0, 0, -day-1), "authz/allow", 1), allowedAt(today.AddDate(0, 0, 9), "authz/ahead", 1), allowedAt(today.AddDate(0, 0, -40), "authz/old", 1))
	}
	before := c.both()
	same(t, len(before), 5003)
	d.Exec(t, up)
	d.Exec(t, up) // it can be run again
	var known, all int
	d.Query(t, `SELECT count(*) FILTER (WHERE path = 'authz/allow'), count(*) FROM decision_counts_names`, &known, &all)
	if known != 1 || all != 200 {
		t.Fatalf("%d names, the real one %d times", all, known)
	}
	c.keep(append(invented(today, "authz", 5000), allowedAt(today, "authz/allow", 1), allowedAt(today, "authz/new", 1))...)
	got := c.both()
	if got["authz authz/allow"] != 7 || got["authz (other)"] != 3*(5000-199)+1 {
		t.Errorf("%d real, %d others", got["authz authz/allow"], got["authz (other)"])
	}
	d.Exec(t, down)
	c.keep(allowedAt(today, "authz/new", 1))
	if got := c.both(); got["authz authz/new"] != 1 || got["authz (other)"] != 3*(5000-199)+1 {
		t.Errorf("after the way down: %d, %d", got["authz authz/new"], got["authz (other)"])
	}
}

// A desk of a former release adds lines by statements of its own, under the name of each path: that is right, and without the cap.
func TestCountNames_FormerDesk(t *testing.T) {
	t.Parallel()
	c := newNames(t, pgtest.New(t))
	c.keep(allowedAt(noon, "authz/allow", 1))
	for _, table := range []string{"decision_counts", "decision_counts_days"} {
		c.Exec(t, `INSERT INTO `+table+` SELECT '`+noon.Format(time.RFC3339)+`'::timestamptz, 'authz/former' || n, 'authz', 1, 0, 0, 0, 0 FROM generate_series(1, 300) AS n`)
	}
	c.keep(append(invented(noon, "authz", 300), allowedAt(noon, "authz/former7", 2))...)
	got := c.both()
	var sum int64
	for _, n := range got {
		sum += n
	}
	if sum != 1+300+900+2 || got["authz authz/former7"] != 1 || got["authz (other)"] != 3*101+2 {
		t.Errorf("%d in all, %d under (other)", sum, got["authz (other)"])
	}
}

// An answer to a question with a filter tells of the lines that may have decisions that fit.
func TestCountNames_Filters(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	c := newNames(t, d)
	c.most(1, 2)
	c.keep(allowedAt(noon, "a/x", 1), allowedAt(noon, "b/x", 2))
	c.keep(allowedAt(noon, "a/y", 4), allowedAt(noon, "b/y", 8), allowedAt(noon, "c/x", 16))
	store := historydb.NewReader(open(t, d.URL, 20*time.Second).DB)
	for _, tc := range []struct {
		q    reader.StatsQuery
		want string
	}{
		{reader.StatsQuery{ByPath: true}, "a/x 1, b/x 2, (other) 28"},
		{reader.StatsQuery{}, "a 5, b 10, (other) 16"},
		{reader.StatsQuery{ByPath: true, Paths: []string{"a/x"}}, "a/x 1, (other) 20"},
		{reader.StatsQuery{ByPath: true, Paths: []string{"a/*"}}, "a/x 1, (other) 20"},
		{reader.StatsQuery{Paths: []string{"a/x"}}, "a 1, (other) 20"},
		{reader.StatsQuery{Paths: []string{"d/x"}}, "(other) 16"},
		{reader.StatsQuery{Services: []string{"b"}}, "b 10, (other) 16"},
		{reader.StatsQuery{ByPath: true, Services: []string{"b"}}, "b/x 2, (other) 24"},
		{reader.StatsQuery{Paths: []string{"a/x", "b/x"}, Services: []string{"b"}}, "b 2, (other) 24"},
		{reader.StatsQuery{Paths: []string{"(other)"}}, "a 4, b 8, (other) 16"},
		{reader.StatsQuery{ByPath: true, Paths: []string{"(other)"}}, "(other) 28"},
	} {
		for _, step := range []time.Duration{time.Hour, 24 * time.Hour} {
			q := tc.q
			q.Since, q.Until, q.Step = noon.Truncate(24*time.Hour), noon.Truncate(24*time.Hour).AddDate(0, 0, 1), step
			lines, err := store.Stats(t.Context(), q)
			check(t, err)
			var got []string
			for _, l := range lines {
				got = append(got, fmt.Sprint(l.Name, " ", l.Counts[reader.Allowed]))
			}
			same(t, strings.Join(got, ", "), tc.want)
		}
	}
}
