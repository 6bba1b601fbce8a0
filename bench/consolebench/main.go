// Command consolebench asks the pages of the console over a Postgres with many decisions and dead letters. It prints
// their times. build/bench starts the server and has readbench fill it.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/history/archive"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/record/subject"
)

// Goals of the pages.
const (
	pageGoal  = 200 * time.Millisecond // p95
	firstGoal = 60_000                 // bytes of the first page and its files, compressed
	// viewers look at the first page. A name may have four streams, so they have five names.
	viewers     = 20
	viewerNames = 5
)

func main() {
	var b bench
	flag.StringVar(&b.url, "url", "", "of the database")
	flag.IntVar(&b.letters, "letters", 0, "dead letters to make first")
	flag.IntVar(&b.runs, "runs", 40, "of each page")
	flag.DurationVar(&b.watch, "watch", 30*time.Second, "how long the first page is followed by 20 viewers")
	only := flag.String("only", "", "pages of this regular expression")
	flag.Parse()
	b.only = regexp.MustCompile(*only)
	if err := b.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type bench struct {
	url           string
	letters, runs int
	watch         time.Duration
	only          *regexp.Regexp

	base    string
	client  *http.Client
	viewers []*http.Client
	conn    *pgx.Conn
	rows    *historydb.Reader
}

func (b *bench) run(ctx context.Context) error {
	db, err := store.Open(db.Config{URL: b.url, StoreTimeout: 30 * time.Second, MaxConns: 16}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := schema.New(db.DB).Migrate(ctx); err != nil {
		return err
	}
	book := ledgerdb.New(db.DB)
	if b.conn, err = pgx.Connect(ctx, b.url); err != nil {
		return err
	}
	defer func() { _ = b.conn.Close(ctx) }()
	if b.letters > 0 {
		if err := fillLetters(ctx, book, b.conn, b.letters); err != nil {
			return err
		}
	}
	b.rows = historydb.NewReader(db.DB)
	for counted := int64(1); counted > 0; { // as the desk does
		if counted, err = b.rows.Count(ctx); err != nil {
			return err
		}
	}
	stop, err := b.serve(ctx, db.DB, book)
	if err != nil {
		return err
	}
	defer stop()
	pages, err := b.pages(ctx)
	if err != nil {
		return err
	}
	if err := b.first(ctx); err != nil {
		return err
	}
	fmt.Println("| page | first time: p50, p95 ms | again: p50, p95 ms | kB, compressed | CPU of Postgres and of the desk, ms | p95 under 200 ms |\n|---|---|---|---|---|---|")
	for _, p := range pages {
		if b.only.MatchString(p.name) {
			if err := b.measure(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return b.watched(ctx)
}

// serve has the console on loopback, over the stores that a desk has, and logs in.
func (b *bench) serve(ctx context.Context, d *db.DB, book *ledgerdb.Ledger) (stop func(), err error) {
	const token = "bench-token-of-the-auditor"
	var names []string
	for i := range viewerNames {
		names = append(names, fmt.Sprintf("viewer%d:viewer:%s", i, tokenOf(i)))
	}
	tokens, err := api.ParseTokens("bench:auditor:" + token + " " + strings.Join(names, " "))
	if err != nil {
		return nil, err
	}
	handler, err := api.New(api.Config{Lease: time.Minute, MaxInFlight: 64}, api.Ports{Book: book, Decisions: b.rows, States: b.rows, Calendar: b.calendar,
		Question: reader.Question{Subject: subject.Spec{Kind: subject.RequestedByHost}}, // as a desk is set without DOCKET_READER_SUBJECT
		Complete: &complete.Answers{Books: b.rows, Status: func(context.Context) complete.Status { return complete.Status{} }}}, api.Auth{Tokens: tokens}, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	pages, err := console.New(console.Config{Plain: true, Views: ledgerdb.NewViews(d)}, handler, ledgerdb.NewSessions(d), zerolog.Nop())
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // it ends with Close
	b.base = "http://" + l.Addr().String()
	for i := range viewerNames {
		viewer, err := b.login(ctx, tokenOf(i))
		if err != nil {
			return nil, err
		}
		b.viewers = append(b.viewers, viewer)
	}
	b.client, err = b.login(ctx, token)
	return func() { _ = server.Close() }, err
}

// tokenOf is the token of a viewer.
func tokenOf(i int) string { return fmt.Sprintf("bench-token-of-viewer-%d-0123456789", i) }

// login gives a client with a session.
func (b *bench) login(ctx context.Context, token string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	login, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		return nil, err
	}
	login.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(login)
	if err != nil {
		return nil, err
	}
	return client, answer.Body.Close()
}

// calendar has the days of the table, without a storage.
func (b *bench) calendar(ctx context.Context) (archive.Calendar, error) {
	today := archive.DayOf(time.Now())
	held, err := b.rows.Holdings(ctx, today)
	return archive.CalendarOf(held, nil, today), err
}

// get asks a page.
func (b *bench) get(ctx context.Context, path string) ([]byte, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", "text/html")
	began := time.Now()
	answer, err := b.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	return body, took, err
}

// page is a page with an address for each run.
type page struct {
	name string
	path func(i int) string
}

// cpuSQL is what all processes of the server have worked so far, in microseconds, as either version of cgroups says it.
const cpuSQL = `SELECT coalesce(substring(pg_read_file('/sys/fs/cgroup/cpu.stat', true) FROM 'usage_usec ([0-9]+)')::int8, trim(pg_read_file('/sys/fs/cgroup/cpuacct/cpuacct.usage', true), E'\n')::int8 / 1000)`

// cpu is the work of the server so far, and that of this process.
func (b *bench) cpu(ctx context.Context) (server, own time.Duration, err error) {
	var micros int64
	if err = b.conn.QueryRow(ctx, cpuSQL).Scan(&micros); err != nil {
		return 0, 0, err
	}
	var used syscall.Rusage
	if err = syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, 0, err
	}
	return time.Duration(micros) * time.Microsecond, time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

func (b *bench) measure(ctx context.Context, p page) error {
	before, own, err := b.cpu(ctx)
	if err != nil {
		return err
	}
	var times [2][]time.Duration
	largest := 0
	for pass := range times {
		for i := range b.runs {
			body, took, err := b.get(ctx, p.path(i))
			if err != nil {
				return err
			}
			times[pass] = append(times[pass], took)
			if pass == 0 {
				largest = max(largest, compressed(body))
			}
		}
		slices.Sort(times[pass])
	}
	after, ownAfter, err := b.cpu(ctx)
	if err != nil {
		return err
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(2*b.runs) }
	at := func(pass, percent int) time.Duration { return times[pass][(b.runs-1)*percent/100] }
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	met := "yes"
	if at(0, 95) >= pageGoal || at(1, 95) >= pageGoal {
		met = "NO"
	}
	fmt.Printf("| %s | %.1f, %.1f | %.1f, %.1f | %.1f | %.1f, %.1f | %s |\n", p.name, ms(at(0, 50)), ms(at(0, 95)), ms(at(1, 50)), ms(at(1, 95)), float64(largest)/1000, each(after-before), each(ownAfter-own), met)
	return nil
}

func compressed(text []byte) int {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(text) // a buffer takes all
	_ = z.Close()
	return out.Len()
}

var files = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

// first measures the bytes of the first page with its files.
func (b *bench) first(ctx context.Context) error {
	body, _, err := b.get(ctx, "/")
	if err != nil {
		return err
	}
	all := compressed(body)
	for _, m := range files.FindAllSubmatch(body, -1) {
		file, _, err := b.get(ctx, string(m[1]))
		if err != nil {
			return err
		}
		all += compressed(file)
	}
	fmt.Printf("The first page with its files has %.1f kB, compressed; goal: under %d kB.\n\n", float64(all)/1000, firstGoal/1000)
	return nil
}

// watched has 20 viewers follow the first page, as its script does: by a stream, or each 5 s where that is refused.
func (b *bench) watched(ctx context.Context) error {
	if b.watch <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.watch)
	defer cancel()
	before, own, err := b.cpu(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var streams, events, polls atomic.Int64
	var all sync.WaitGroup
	for i := range viewers {
		viewer := b.viewers[i%len(b.viewers)]
		all.Go(func() {
			for ctx.Err() == nil {
				if b.follow(ctx, viewer, &streams, &events) {
					continue
				}
				if _, _, err := b.get(ctx, "/"); err == nil {
					polls.Add(1)
				}
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	after, ownAfter, err := b.cpu(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(took) }
	fmt.Printf("\n%d viewers of the first page for %s: %d streams with %d events, and %d questions by those without one. Of one processor Postgres took %.2f %%; the desk and these viewers took %.2f %%. Kafka is asked by the desk itself, and as often without viewers.\n",
		viewers, took.Round(time.Second), streams.Load(), events.Load(), polls.Load(), percent(after-before), percent(ownAfter-own))
	return nil
}

// follow reads the events of the first page until the time is over. It returns false if the desk has no place for a stream.
func (b *bench) follow(ctx context.Context, viewer *http.Client, streams, events *atomic.Int64) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/events/now", nil)
	if err != nil {
		return false
	}
	answer, err := viewer.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return false
	}
	streams.Add(1)
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event:") {
			events.Add(1)
		}
	}
	return true
}

// pages are the pages of the console, with values of decisions and letters that are there.
func (b *bench) pages(ctx context.Context) ([]page, error) {
	found, err := b.rows.Search(ctx, reader.Filter{}, reader.Page{Limit: 1000})
	if err != nil || len(found.Decisions) == 0 {
		return nil, fmt.Errorf("there is nothing to ask for: %w", err)
	}
	var likes []reader.Decision
	for _, d := range found.Decisions {
		if d.Path != nil && d.Service != nil && d.RequestedBy != nil {
			likes = append(likes, d)
		}
	}
	like := func(i int) reader.Decision { return likes[i*7%len(likes)] }
	host := func(d reader.Decision) string { h, _, _ := net.SplitHostPort(*d.RequestedBy); return h }
	search := func(name string, of func(d reader.Decision) []string) page {
		return page{name, func(i int) string {
			q, pairs := url.Values{}, of(like(i))
			for at := 0; at+1 < len(pairs); at += 2 {
				q.Set(pairs[at], pairs[at+1])
			}
			return "/decisions?" + q.Encode()
		}}
	}
	fixed := func(name, path string) page { return page{name, func(int) string { return path }} }
	deep := found.Decisions[len(found.Decisions)-1]
	all := []page{
		fixed("Now", "/"),
		fixed("Decisions", "/decisions"),
		fixed("Decisions, 24 h", "/decisions?since=24h"),
		fixed("Decisions, 30 d", "/decisions?since=30d"),
		fixed("Decisions, older", "/decisions?after="+reader.SpotOf(deep).Cursor(false)),
		fixed("Decisions, newer", "/decisions?before="+reader.SpotOf(deep).Cursor(true)),
		fixed("Decisions, denied today", "/decisions?verdict=denied&since=today"),
		fixed("Decisions, errors in 7 d", "/decisions?verdict=error&since=7d"),
		search("Decisions, a path", func(d reader.Decision) []string { return []string{"path", *d.Path, "since", "7d"} }),
		search("Decisions, a service", func(d reader.Decision) []string { return []string{"service", *d.Service, "since", "7d"} }),
		search("Decisions, a host in 30 d", func(d reader.Decision) []string { return []string{"requested_by", host(d), "since", "30d"} }),
		search("Decisions, a host and path, denied", func(d reader.Decision) []string {
			return []string{"requested_by", host(d), "path", *d.Path, "verdict", "denied", "since", "30d"}
		}),
		search("Decisions, a value of input on a path in 24 h", func(d reader.Decision) []string {
			return []string{"path", *d.Path, "match", "input:/user=user-7", "since", "24h"}
		}),
		fixed("Decisions, nothing fits in 24 h", "/decisions?service=none-of-these&since=24h"),
		{"Why", func(i int) string {
			return "/decisions/" + url.PathEscape(like(i).ID) + "?" + url.Values{"timestamp": {like(i).Time.Format(time.RFC3339Nano)}}.Encode()
		}},
		{"Compare", func(i int) string { return "/compare?" + url.Values{"a": {like(i).ID}, "b": {like(i + 1).ID}}.Encode() }},
		fixed("Rates, 24 h", "/rates"),
		fixed("Rates, 30 d", "/rates?since=30d"),
		fixed("Rates by service, 7 d", "/rates?by=service&since=7d"),
		search("Rates of a path, 2 h", nil),
	}
	all[len(all)-1].path = func(i int) string { return "/rates?" + url.Values{"path": {*like(i).Path}, "since": {"2h"}}.Encode() }
	return b.letterPages(ctx, all)
}

// letterPages adds those about dead letters.
func (b *bench) letterPages(ctx context.Context, all []page) ([]page, error) {
	fixed := func(name, path string) page { return page{name, func(int) string { return path }} }
	var ids, groups []string
	for _, q := range []struct {
		sql string
		to  *[]string
	}{{`SELECT dead_letter_id FROM dead_letters ORDER BY last_failed_at DESC LIMIT 100`, &ids}, {`SELECT fingerprint FROM dead_letter_groups ORDER BY group_id LIMIT 100`, &groups}} {
		rows, err := b.conn.Query(ctx, q.sql)
		if err != nil {
			return nil, err
		}
		if *q.to, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	all = append(all, fixed("Audit", "/audit"), fixed("Audit, a person", "/audit?actor=bench"), fixed("Audit, an act", "/audit?act=retried"), fixed("Audit, a day", "/audit?since=24h"), fixed("Archive", "/archive"))
	if len(ids) == 0 {
		return all, nil
	}
	return append(all,
		fixed("Dead letters", "/dead-letters"), fixed("Dead letters, resolved too", "/dead-letters?all=1"),
		page{"A group", func(i int) string { return "/dead-letters/groups/" + groups[i%len(groups)] }},
		page{"A dead letter", func(i int) string { return "/dead-letters/" + ids[i%len(ids)] }}), nil
}
