//go:build integration

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"docket/internal/testkit/testenv"
)

// nightArchive is a desk that archives an old day by itself, behind an object storage and a database that can stop it at a
// step.
type nightArchive struct {
	*system
	storage *door
	env     []string
}

const oldDecisions = 400

func newNightArchive(t *testing.T) *nightArchive {
	t.Helper()
	server := testenv.S3(t, "nights")
	storage := newDoor(t, server.URL)
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	s.exec(`ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before`)
	var old []string
	for n := range oldDecisions {
		old = append(old, fmt.Sprintf(`{"decision_id":"old-%d","timestamp":"2026-03-04T12:00:%02d.5Z","path":"authz/allow","result":true,"input":{"n":%d}}`, n, n%60, n))
	}
	s.send(append(old, logOf("new", ""))...)
	s.consumer()
	s.replayer()
	s.drained(patience)
	if n := s.rows("decision_id LIKE 'old-%'"); n != oldDecisions {
		t.Fatalf("%d rows", n)
	}
	return &nightArchive{s, storage, append(deskEnv(t), "DOCKET_ARCHIVE_AFTER=2d", "DOCKET_OPERATOR=mara", "DOCKET_ARCHIVE_TO=s3://nights/docket",
		"DOCKET_ARCHIVE_S3_ENDPOINT="+storage.URL, "DOCKET_ARCHIVE_S3_ACCESS_KEY="+server.AccessKey, "DOCKET_ARCHIVE_S3_SECRET_KEY="+server.SecretKey)}
}

// begin starts a desk that need not wait for the lease of the one that was killed.
func (n *nightArchive) begin() *process {
	n.t.Helper()
	n.exec(`UPDATE dead_letter_duties SET until = now() WHERE duty = 'archive'`)
	return n.desk(n.env...)
}

// dies waits until a desk was killed.
func (n *nightArchive) dies(p *process, step string) {
	n.t.Helper()
	eventually(n.t, patience, "the desk is killed while it is "+step, func() error {
		select {
		case <-p.ended:
			return nil
		default:
			return errors.New("it runs")
		}
	})
}

// killedAtStorage kills a desk at its first request that fits, before the storage sees it.
func (n *nightArchive) killedAtStorage(step string, fits func(r *http.Request) bool) {
	n.t.Helper()
	var mu sync.Mutex
	var p *process
	n.storage.mu.Lock()
	n.storage.at = func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if p != nil && fits(r) {
			_ = p.cmd.Process.Kill()
		}
	}
	n.storage.mu.Unlock()
	mu.Lock()
	p = n.begin()
	mu.Unlock()
	n.dies(p, step)
	n.storage.mu.Lock()
	n.storage.at = nil
	n.storage.mu.Unlock()
}

// killedAtDatabase kills a desk within a statement of that tag, which waits for a lock of the test.
func (n *nightArchive) killedAtDatabase(step, tag string) {
	n.t.Helper()
	const key = 724519
	holder := n.connect()
	for _, sql := range []string{
		fmt.Sprintf(`SELECT pg_advisory_lock(%d)`, key),
		fmt.Sprintf(`CREATE FUNCTION wait_at_step() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('application_name') LIKE 'docket%%' THEN PERFORM pg_advisory_xact_lock(%d); END IF; END $$`, key),
		fmt.Sprintf(`CREATE EVENT TRIGGER wait_at_step ON ddl_command_end WHEN TAG IN ('%s') EXECUTE FUNCTION wait_at_step()`, tag),
	} {
		if _, err := holder.Exec(n.t.Context(), sql); err != nil {
			n.t.Fatal(err)
		}
	}
	p := n.begin()
	eventually(n.t, patience, "the desk is "+step, func() error {
		var waiting int
		err := n.scan(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted`, []any{key}, &waiting)
		if err == nil && waiting == 0 {
			err = errors.New("it is not there yet")
		}
		return err
	})
	p.kill()
	n.exec(`DROP EVENT TRIGGER wait_at_step; DROP FUNCTION wait_at_step()`)
	// The server does not see that the client is gone while it waits.
	n.exec(fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %d AND NOT granted`, key))
	if _, err := holder.Exec(n.t.Context(), fmt.Sprintf(`SELECT pg_advisory_unlock(%d)`, key)); err != nil {
		n.t.Fatal(err)
	}
}

// TestNightArchive_KilledAtEachStep kills real desks while they archive by themselves. The desk after them archives the day
// once, and nothing is lost.
func TestNightArchive_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	n := newNightArchive(t)
	writes := func(suffix string) func(r *http.Request) bool {
		return func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, suffix) && r.Method != http.MethodGet && r.Method != http.MethodHead
		}
	}
	n.killedAtStorage("writing the marker", writes(".started"))
	n.killedAtStorage("writing rows", writes(".parquet"))
	n.killedAtStorage("writing the manifest", writes(".manifest.json"))
	n.killedAtStorage("removing the files of the one before", func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, ".started") && r.Method == http.MethodDelete
	})
	sealed := false
	n.killedAtStorage("removing the marker of a whole archive", func(r *http.Request) bool {
		sealed = sealed || writes(".manifest.json")(r)
		return sealed && strings.HasSuffix(r.URL.Path, ".started") && r.Method == http.MethodDelete
	})
	n.killedAtStorage("reading back", func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, ".parquet") && r.Method == http.MethodGet
	})
	if got := n.rows("decision_id LIKE 'old-%'"); got != oldDecisions {
		t.Fatalf("%d rows are in the table, and nothing was dropped yet", got)
	}
	n.killedAtDatabase("taking the day out", "ALTER TABLE")
	n.killedAtDatabase("dropping the day", "DROP TABLE")

	p := n.begin()
	eventually(t, patience, "the day is archived", func() error {
		var left int
		err := n.scan(`SELECT count(*) FROM pg_class WHERE relname IN ('decision_logs_p20260304', 'decision_logs_leaving_20260304')`, nil, &left)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d tables of the day are left", left)
		}
		return err
	})
	if p.stop() != 0 {
		t.Error("the desk failed")
	}
	n.archivedOnce()
}

// archivedOnce fails unless the archive has each decision of the day once, and both checks are clean.
func (n *nightArchive) archivedOnce() {
	n.t.Helper()
	run := func(args ...string) string {
		n.t.Helper()
		out, code := n.command(n.env, "docket", args...)
		if code != 0 {
			n.t.Errorf("docket %s: %d: %s", strings.Join(args, " "), code, out)
		}
		return out
	}
	run("archive", "verify", "--all")
	if out := run("archive", "list"); strings.Contains(out, "not finished") || strings.Contains(out, "without a manifest") {
		n.t.Errorf("files were left: %s", out)
	}
	args := []string{"verify", "--since", "1h"}
	for _, dir := range n.places.SpoolDirs {
		args = append(args, "--spool", dir)
	}
	if out := run(args...); !strings.Contains(out, "none 0\n") || !strings.Contains(lineOf(out, "I3"), " ok ") {
		n.t.Errorf("verify: %s", out)
	}
	var restored struct {
		Archives                               []string
		Lines, Stored, Equal, Again, Conflicts int64
	}
	out := run("restore", "--day", "2026-03-04", "--json")
	_, object, _ := strings.Cut(out, "{")
	if err := json.Unmarshal([]byte("{"+object), &restored); err != nil && restored.Lines == 0 {
		n.t.Fatalf("%v: %s", err, out)
	}
	if len(restored.Archives) != 1 || restored.Lines != oldDecisions || restored.Stored != oldDecisions || n.rows("decision_id LIKE 'old-%'") != oldDecisions {
		n.t.Errorf("restored %+v", restored)
	}
}
