//go:build integration

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/testkit/testenv"
)

// archives is a database with an old day, a shelf, and the real command on both.
type archives struct {
	t   *testing.T
	db  *pgx.Conn
	env []string
	day string
	n   int // rows that were ever stored
}

func (a *archives) exec(sql string, args ...any) {
	a.t.Helper()
	if _, err := a.db.Exec(a.t.Context(), sql, args...); err != nil {
		a.t.Fatal(err)
	}
}

// rows stores so many decisions of the day, on another connection than a command's, as an hour ago: a restore waits until those of the last two
// minutes are counted.
func (a *archives) rows(day string, n int) {
	a.t.Helper()
	a.exec(`INSERT INTO decision_logs (decision_id, ts, path, raw, source_topic, source_partition, source_offset, source_index, stored_at)
		SELECT 'd' || n, $1::timestamptz + n * interval '1 millisecond', 'authz/allow', jsonb_build_object('decision_id', 'd' || n, 'input', repeat(md5(n::text), 20)), 't', 0, n, 0, now() - interval '1 hour'
		  FROM generate_series($2::int, $3) AS n`, day, a.n, a.n+n-1)
	a.n += n
}

// everything is the day as text, in order.
func (a *archives) everything() (text string) {
	a.t.Helper()
	err := a.db.QueryRow(a.t.Context(), `SELECT coalesce(string_agg(t::text, E'\n' ORDER BY ts, decision_id), '') FROM decision_logs AS t WHERE ts >= $1 AND ts < $1::timestamptz + interval '1 day'`, a.day).Scan(&text)
	if err != nil {
		a.t.Fatal(err)
	}
	return text
}

// run runs docket to its end, or until kill says so after a line of its progress.
func (a *archives) run(kill func(step string) bool, args ...string) (out string, err error) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(bin, "docket"), args...)
	c.Env = a.env
	var stdout bytes.Buffer
	c.Stdout = &stdout
	told, err := c.StderrPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		a.t.Fatal(err)
	}
	var said strings.Builder
	killed := false
	for lines := bufio.NewScanner(told); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if step, ok := strings.CutPrefix(lines.Text(), "step "); ok && kill != nil && kill(step) {
			_ = c.Process.Kill()
			killed = true
		}
	}
	err = c.Wait()
	if killed { // on a busy machine its session may have the day for longer than the next command waits
		eventually(a.t, patience, "the session of the killed command has ended", func() error {
			var has bool
			err := a.db.QueryRow(a.t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&has)
			if err == nil && has {
				err = errors.New("it has the day")
			}
			return err
		})
	}
	return stdout.String() + said.String(), err
}

// TestArchive_KilledLosesNothing kills the real commands at random points, while rows come into that day and others, and
// runs them again. Every decision that was ever stored is in the table, or comes back from the shelf, once and as it was.
func TestArchive_KilledLosesNothing(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	for name, shelf := range map[string][]string{
		"directory": {"DOCKET_ARCHIVE_TO=" + filepath.Join(t.TempDir(), "shelf")},
		"bucket": {"DOCKET_ARCHIVE_TO=s3://days/docket", "DOCKET_ARCHIVE_S3_ENDPOINT=" + server.URL, "DOCKET_ARCHIVE_S3_ACCESS_KEY=" + server.AccessKey,
			"DOCKET_ARCHIVE_S3_SECRET_KEY=" + server.SecretKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchives(t, shelf)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			rounds := 2
			if name == "bucket" {
				rounds = 1
			}
			for round := range rounds {
				a.killed(random, round)
			}
		})
	}
}

func newArchives(t *testing.T, shelf []string) *archives {
	t.Helper()
	dsn := testenv.Postgres(t).Database(t)
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.WithoutCancel(t.Context())) })
	a := &archives{t: t, db: db, day: "2026-03-04", env: append([]string{"DOCKET_DATABASE_URL=" + dsn, "DOCKET_OPERATOR=mara", "HOME=" + t.TempDir()}, shelf...)}
	if out, err := a.run(nil, "migrate"); err != nil {
		t.Fatal(out, err)
	}
	a.exec(`ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before;
		CREATE TABLE decision_logs_p20260304 PARTITION OF decision_logs FOR VALUES FROM ('2026-03-04 00:00+00') TO ('2026-03-05 00:00+00')`)
	a.rows(a.day, 3000)
	return a
}

// killed is one round: archives are killed until one ends, then restores, and the day has to be what it was.
func (a *archives) killed(random *rand.Rand, round int) {
	a.t.Helper()
	steps := []string{"opened", "reading", "written", "verified", "detached", "late", "dropped"}
	before, late := a.everything(), []string{}
	for range 3 {
		at, wait := steps[random.IntN(len(steps))], time.Duration(random.IntN(20))*time.Millisecond
		written := false
		out, err := a.run(func(step string) bool {
			if step == "written" && !written {
				written = true
				id := a.n
				a.rows(a.day, 1) // late, after the snapshot
				a.rows("2026-11-01", 50)
				late = append(late, fmt.Sprintf("d%d", id))
			}
			if step != at {
				return false
			}
			time.Sleep(wait) // somewhere behind the step: no point of its own is meant
			return true
		}, "archive", "--day", a.day, "--verbose")
		if err != nil && !strings.Contains(err.Error(), "killed") {
			a.t.Fatalf("round %d, killed at %s: %v\n%s", round, at, err, out)
		}
	}
	for range 3 { // the day, what was left off, and what came late into the default partition
		if out, err := a.run(nil, "archive", "--day", a.day); err != nil {
			a.t.Fatalf("round %d: %v\n%s", round, err, out)
		}
	}
	if left := a.everything(); left != "" {
		a.t.Fatalf("round %d: %d bytes are left in the table", round, len(left))
	}
	for range 2 {
		lines := 0
		stop := 1 + random.IntN(4)
		if out, err := a.run(func(step string) bool { lines++; return lines > stop }, "restore", "--day", a.day, "--verbose"); err != nil && !strings.Contains(err.Error(), "killed") {
			a.t.Fatalf("round %d: %v\n%s", round, err, out)
		}
	}
	out, err := a.run(nil, "restore", "--day", a.day, "--json")
	var restored struct{ Stored, Equal, Again, Differs int64 }
	if err != nil || json.Unmarshal([]byte(out), &restored) != nil || restored.Again+restored.Differs > 0 {
		a.t.Fatalf("round %d: %v\n%s", round, err, out)
	}
	after := a.everything()
	for line := range strings.SplitSeq(before, "\n") {
		if strings.Count(after, line) != 1 {
			a.t.Fatalf("round %d: %d times in the table: %.80s", round, strings.Count(after, line), line)
		}
	}
	for _, id := range late {
		if !strings.Contains(after, "("+id+",") {
			a.t.Fatalf("round %d: %s came late and is lost", round, id)
		}
	}
	if have, want := strings.Count(after, "\n")+1, strings.Count(before, "\n")+1+len(late); have != want {
		a.t.Fatalf("round %d: %d rows and not %d", round, have, want)
	}
	if out, err := a.run(nil, "archive", "verify", "--all"); err != nil {
		a.t.Fatalf("round %d: %v\n%s", round, err, out)
	}
	// A storage can answer a request of a killed client after the next run has listed its files.
	inBucket := slices.ContainsFunc(a.env, func(set string) bool { return strings.Contains(set, "=s3://") })
	if out, err := a.run(nil, "archive", "list"); err != nil || !inBucket && (strings.Contains(out, "not finished") || strings.Contains(out, "without a manifest")) {
		a.t.Errorf("round %d: files were left: %v\n%s", round, err, out)
	}
}

// TestArchive_ClosedLettersComeBack kills the real commands while they archive dead letters that were closed, and runs them again: the
// ledger lets go of each only once it is on the shelf, and gets all of them back as they were.
func TestArchive_ClosedLettersComeBack(t *testing.T) {
	t.Parallel()
	a := newArchives(t, []string{"DOCKET_ARCHIVE_TO=" + filepath.Join(t.TempDir(), "shelf")})
	const closed = 2500
	a.exec(`INSERT INTO dead_letter_groups (fingerprint, kind, code, "table", "column", "constraint", message) VALUES ('0123456789abcdef', 'decode', 'syntax', '', '', '', 'no JSON')`)
	a.exec(`INSERT INTO dead_letters (dead_letter_id, group_id, origin_topic, origin_partition, origin_offset, found_topic, found_partition, found_offset, found_at, key, value, headers,
			message, first_failed_at, last_failed_at, changed_by, changed_act, why)
		SELECT encode(sha256(n::text::bytea), 'hex'), 1, 't', 0, n, 'dlq', 0, n, now(), n::text::bytea, sha256(n::text::bytea), '[]', 'no JSON', now(), now(), 'desk', 'entered', 'read'
		  FROM generate_series(1, $1::int) AS n`, closed)
	a.exec(`UPDATE dead_letters SET state = 'RESOLVED', changed_at = clock_timestamp(), changed_by = 'ann', changed_act = 'closed', why = 'never';
		SET LOCAL session_replication_role = replica; UPDATE dead_letters SET changed_at = '2026-03-04 12:00Z'`) // as if it had been then
	const all = `SELECT coalesce(string_agg(concat_ws('|', dead_letter_id, key, value, headers, message, origin_offset), E'\n' ORDER BY dead_letter_id), '') FROM dead_letters`
	text := func() (s string) {
		t.Helper()
		if err := a.db.QueryRow(t.Context(), all).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := text()
	for _, at := range []string{"reading", "written", "verified"} {
		if out, err := a.run(func(step string) bool { return step == at }, "archive", "--older-than", "3000d", "--yes", "--verbose"); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("killed at %s: %v\n%s", at, err, out)
		}
	}
	if out, err := a.run(nil, "archive", "--dead-letters"); err != nil {
		t.Fatal(err, out)
	}
	a.exec(`DELETE FROM dead_letters`) // which the ledger refuses where one is in no archive
	stop := 0
	if out, err := a.run(func(string) bool { stop++; return stop > 2 }, "restore", "--dead-letters", "--day", a.day, "--verbose"); err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatal(err, out)
	}
	out, err := a.run(nil, "restore", "--dead-letters", "--day", a.day, "--json")
	var restored struct{ Stored, Equal, Differs int64 }
	if err != nil || json.Unmarshal([]byte(out), &restored) != nil || restored.Differs > 0 || restored.Stored+restored.Equal < closed || text() != before {
		t.Fatalf("%v, %+v\n%s", err, restored, out)
	}
	if out, err := a.run(nil, "archive", "verify", "--all"); err != nil || !strings.Contains(out, "dead_letters-2026-03-04-001-") {
		t.Fatal(err, out)
	}
}

// door is before the object storage: it acts at a request before the storage sees the request, and at an answer before it is passed on.
type door struct {
	*httptest.Server
	mu     sync.Mutex
	at     func(r *http.Request)
	answer func(r *http.Response)
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	way := &http.Transport{DisableCompression: true}
	d := &door{}
	proxy := &httputil.ReverseProxy{
		Transport:     way,
		FlushInterval: -1, // as the storage sends it
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as if nothing stood between
		ModifyResponse: func(r *http.Response) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.answer != nil {
				d.answer(r)
			}
			return nil
		},
	}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		if d.at != nil {
			d.at(r)
		}
		d.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { d.Close(); way.CloseIdleConnections() })
	return d
}

// guard calls at with each request for an archived part, one at a time, from now on.
func (d *door) guard(at func(method, path string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".parquet") {
			at(r.Method, r.URL.Path)
		}
	}
}

// TestArchive_FailedDropsNothing: the object storage goes away, and what it kept is broken.
func TestArchive_FailedDropsNothing(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	storage := newDoor(t, server.URL)
	a := newArchives(t, []string{"DOCKET_ARCHIVE_TO=s3://days/docket", "DOCKET_ARCHIVE_S3_ENDPOINT=" + storage.URL, "DOCKET_ARCHIVE_S3_ACCESS_KEY=" + server.AccessKey,
		"DOCKET_ARCHIVE_S3_SECRET_KEY=" + server.SecretKey})
	before := a.everything()
	storage.guard(func(method, _ string) {
		if method != http.MethodGet && method != http.MethodHead {
			server.Kill() // away once the rows are being written
		}
	})
	if out, err := a.run(nil, "archive", "--day", a.day, "--verbose"); err == nil || !strings.Contains(out, "cannot be reached") {
		t.Fatalf("%v\n%s", err, out)
	}
	server.Start(t)
	for name, harm := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 100) },
		"tampered": func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)/2] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
	} {
		harmed := map[string]bool{}
		storage.guard(func(method, path string) {
			if method == http.MethodGet && !harmed[path] {
				harmed[path] = true
				if err := harm(filepath.Join(server.Dir, filepath.FromSlash(path))); err != nil {
					t.Error(err)
				}
			}
		})
		out, err := a.run(nil, "archive", "--day", a.day, "--verbose")
		if err == nil || !strings.Contains(out, "read back") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		storage.guard(func(string, string) {})
		if len(harmed) == 0 {
			t.Fatalf("%s: nothing was read back\n%s", name, out)
		}
		if out, err := a.run(nil, "archive", "verify", "--day", a.day); err == nil || !strings.Contains(out, "broken") && !strings.Contains(out, "storage") {
			t.Errorf("%s: verify: %v\n%s", name, err, out)
		}
		if a.everything() != before {
			t.Fatalf("%s: the table was changed", name)
		}
	}
	if out, err := a.run(nil, "archive", "--day", a.day); err != nil || a.everything() != "" {
		t.Fatalf("%v\n%s", err, out)
	}
}
