//go:build integration

package store_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	process "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/storetest"
	"docket/internal/testkit/testenv"
)

// pooler is where the script has put pgbouncer.
var pooler = sync.OnceValues(func() (string, error) {
	cmd := process.Command("../../../test/servers/pgbouncer")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(out.String()), nil
})

// poolerIni is what docs/scaling.md asks of pgbouncer; the rest is this test's.
const poolerIni = `[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
auth_user = %s
pool_mode = transaction
max_client_conn = 200
default_pool_size = %d
`

// nobody is an account without rights: pgbouncer does not run as root.
const nobody = 65534

// pooled starts pgbouncer in transaction mode, with so many connections to the server of a URL, and gives the way through it.
func pooled(t *testing.T, server string, size int) func(url string) string {
	t.Helper()
	from, err := pooler()
	if err != nil {
		t.Fatalf("no pgbouncer to test with: %v", err)
	}
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal("the server's URL cannot be read")
	}
	dir, err := os.MkdirTemp("", "docket-pgbouncer-") //nolint:usetesting // it runs as nobody, who may not pass through a directory of ours
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.CopyFS(filepath.Join(dir, "bin"), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	addr, err := testenv.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	password, _ := to.User.Password()
	users, ini := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	for file, text := range map[string]string{
		users: fmt.Sprintf("%q %q\n", to.User.Username(), password),
		ini:   fmt.Sprintf(poolerIni, to.Hostname(), to.Port(), port, users, to.User.Username(), size),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := process.Command(filepath.Join(dir, "bin", "pgbouncer"), ini)
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "bin")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				err = os.Chown(path, nobody, nobody)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start pgbouncer: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer said:\n%s", said.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgbouncer does not listen: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return func(server string) string {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal("the server's URL cannot be read")
		}
		u.Host = addr
		return u.String()
	}
}

// behind is a server behind a pooler.
type behind struct {
	server
	through func(string) string
}

func (b behind) NoCopy(t testing.TB) db.Config {
	cfg := b.server.NoCopy(t)
	cfg.URL = b.through(cfg.URL)
	return cfg
}

// ReadOnly ends the pooler's connections both ways, as RECONNECT on its console does after a failover: a session keeps
// what it was when it began, and the pooler hands it out for as long as it lives.
func (b behind) ReadOnly(t testing.TB) func() {
	heal := b.server.ReadOnly(t)
	b.reconnected(t)
	return func() { heal(); b.KillSessions(t); b.reconnected(t) }
}

// reconnected waits until the pooler has met every connection that was ended.
func (b behind) reconnected(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := func() error {
			conn, err := pgx.Connect(t.Context(), b.through(b.URL))
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.Background()) }()
			return conn.Ping(t.Context())
		}()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no way through the pooler: %v", err)
		}
	}
}

func TestPooler_Conformance(t *testing.T) {
	t.Parallel()
	through := pooled(t, pgtest.New(t).URL, 20)
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			proxy, err := pgtest.Listen(through(d.URL))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			c.Run(t, behind{server{d, proxy}, through})
		})
	}
}

// Many writers share two connections to the server, and what one sets for its transaction no other finds there.
func TestPooler_WritersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	url := pooled(t, d.URL, 2)(d.URL)
	const writers, batches = 8, 10
	var wait sync.WaitGroup
	for w := range writers {
		db := open(t, url, 30*time.Second)
		wait.Go(func() {
			for b := range batches {
				rows := []pipeline.Row{row(fmt.Sprintf("%d-%d", w, b), noon, `{}`), row(fmt.Sprintf("%d-%d+", w, b), noon, `{}`)}
				if _, err := db.Store(t.Context(), rows, b%2 == 0); err != nil {
					t.Errorf("store: %v", err)
				}
				if err := db.Probe(t.Context(), noon); err != nil {
					t.Errorf("probe: %v", err)
				}
			}
			for _, c := range schema.New(db.DB).Check(t.Context(), db.Probe) {
				if c.Level == schema.Fail {
					t.Errorf("check: %+v", c)
				}
			}
			if _, err := schema.New(db.DB).MakePartitions(t.Context(), 3); err != nil {
				t.Errorf("make partitions: %v", err)
			}
		})
	}
	wait.Wait()
	if n := d.Count(t); n != 2*writers*batches {
		t.Errorf("%d rows, want %d", n, 2*writers*batches)
	}
	// The pooler keeps its connections. One of this test's own, as that of the count, ends some time after it was closed.
	var sessions int
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		d.Query(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`, &sessions)
		if sessions <= 2 || time.Now().After(deadline) {
			break
		}
	}
	if sessions < 1 || sessions > 2 {
		t.Errorf("%d sessions at the server, the pooler may have 2", sessions)
	}
	for range 4 { // whichever of the two it is
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		var left string
		err = conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(name || '=' || setting, ' '), '') FROM pg_settings WHERE source = 'session'
			AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'standard_conforming_strings')`, pgx.QueryExecModeExec).Scan(&left)
		if err != nil || left != "" {
			t.Errorf("a transaction left %q to the next one, %v", left, err)
		}
		_ = conn.Close(t.Context())
	}
}

// A lock of the session, as migrations take it, stays on the pooler's connection, and whoever comes next on another one waits
// for it: docs/scaling.md says that migrations go to the server itself.
func TestPooler_MigrateBesideIt(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	url := pooled(t, d.URL, 4)(d.URL)
	one, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Exec(t.Context(), `SELECT pg_advisory_lock(1)`); err != nil {
		t.Fatal(err)
	}
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const lockedSQL = `SELECT count(*) FROM pg_locks l JOIN pg_database b ON b.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`
	var left int
	if d.Query(t, lockedSQL, &left); left != 1 {
		t.Errorf("%d locks are left of a client that went, the docs say that its lock stays", left)
	}
	if n, err := schema.New(open(t, d.URL, 30*time.Second).DB).Migrate(t.Context()); err != nil || n == 0 {
		t.Fatalf("%d steps, %v", n, err)
	}
	if d.Query(t, lockedSQL, &left); left != 1 {
		t.Errorf("%d locks are left after the migration", left)
	}
	if _, err := open(t, url, 30*time.Second).Store(t.Context(), []pipeline.Row{row("a", noon, `{}`)}, false); err != nil {
		t.Errorf("store: %v", err)
	}
}

// A transaction pooler cannot carry a setting of the URL for the session, and says so.
func TestPooler_RefusesSessionSettings(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	through := pooled(t, d.URL, 2)
	u, err := url.Parse(through(d.URL))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("statement_timeout", "1000")
	u.RawQuery = query.Encode()
	_, err = open(t, u.String(), 10*time.Second).Store(t.Context(), []pipeline.Row{row("a", noon, `{}`)}, false)
	if v := errclass.Classify(err); err == nil || v.Code != pgerrcode.ProtocolViolation {
		t.Errorf("with a setting that the pooler does not carry: %v", err)
	}
}

// TestPooler_KeepsLimits: indexing days lifts the limits of its own session alone. One of a pooler is others' next.
func TestPooler_KeepsLimits(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER DATABASE "`+d.Name+`" SET statement_timeout = '7s'`)
	for url, want := range map[string]string{d.URL: "0", pooled(t, d.URL, 1)(d.URL): "7s"} {
		conn, err := pgx.ConnectConfig(t.Context(), open(t, url, time.Minute).ConnConfig())
		if err != nil {
			t.Fatal(err)
		}
		var limit string
		if err := schema.Unhurried(t.Context(), conn); err != nil {
			t.Error(err)
		}
		if err := conn.QueryRow(t.Context(), `SHOW statement_timeout`).Scan(&limit); err != nil || limit != want {
			t.Errorf("%s, want %s, %v", limit, want, err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestUnhurried_AnyNumber: a pooler numbers sessions as it likes, also with more than an int of the server takes.
func TestUnhurried_AnyNumber(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	cc := open(t, d.URL, time.Minute).ConnConfig()
	dial := cc.DialFunc
	cc.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return numbering{conn}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), cc)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if pid := conn.PgConn().PID(); pid < 1<<31 {
		t.Fatalf("session %d", pid)
	}
	if err := schema.Unhurried(t.Context(), conn); err != nil {
		t.Error(err)
	}
}

// numbering is a connection of a pooler that gives its sessions large numbers.
type numbering struct{ net.Conn }

func (n numbering) Read(p []byte) (int, error) {
	read, err := n.Conn.Read(p)
	if at := bytes.Index(p[:read], []byte{'K', 0, 0, 0, 12}); at >= 0 && at+5 < read {
		p[at+5] |= 0x80
	}
	return read, err
}
