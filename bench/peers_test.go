//go:build integration

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"docket/internal/testkit/testenv"
)

const (
	besidePeers = "Docket, seen row by row as the peers are"
	peerFolder  = "peers" // from the folder of this package
)

// toTextJSON puts a table with columns of json into the place of Docket's, which waits under another name. A place in Kafka that is not
// given is 0 there.
var toTextJSON = []string{
	"ALTER TABLE decision_logs RENAME TO decision_logs_of_docket",
	"CREATE TABLE decision_logs (LIKE decision_logs_of_docket INCLUDING ALL)",
	"ALTER TABLE decision_logs ALTER labels TYPE json, ALTER bundles TYPE json, ALTER raw TYPE json",
	"ALTER TABLE decision_logs ALTER source_partition SET DEFAULT 0, ALTER source_offset SET DEFAULT 0, ALTER source_index SET DEFAULT 0",
}

var fromTextJSON = []string{"DROP TABLE decision_logs", "ALTER TABLE decision_logs_of_docket RENAME TO decision_logs"}

// peers compares Docket with the workers of others, each draining the same topic into the same empty table.
func (b *bench) peers(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	built, missing, err := b.buildPeers(ctx)
	if err != nil {
		return err
	}
	if _, err := b.drained(ctx, load{topic: t}); err != nil { // warms up the servers, and makes the rows with which those of the peers are compared
		return fmt.Errorf("first drain: %w", err)
	}
	want := map[bool]int64{}
	for _, placeless := range []bool{false, true} {
		if want[placeless], err = b.fingerprint(ctx, placeless); err != nil {
			return err
		}
	}
	against := func(p Peer, start starter) func() error {
		return func() error {
			_, err := b.measure(ctx, p.Name, func(ctx context.Context) (run Run, err error) {
				if p.TextJSON {
					if err := b.sql(ctx, toTextJSON...); err != nil {
						return run, err
					}
					defer func() { err = errors.Join(err, b.sql(context.WithoutCancel(ctx), fromTextJSON...)) }()
				}
				if run, err = b.seenDraining(ctx, t, start); err != nil {
					return run, err
				}
				return run, b.sameRows(ctx, want[p.Placeless], p)
			})
			return err
		}
	}
	acts := []func() error{against(Peer{Name: besidePeers}, b.startDocket)}
	for _, p := range built {
		acts = append(acts, against(p, b.startPeer(p)))
	}
	broken := b.rounds(b.Rounds, acts...)
	for _, folder := range b.Peers { // also what was measured before something broke
		p, _ := PeerIn(folder)
		b.judgePeer(p, missing[folder])
	}
	if len(missing) > 0 {
		broken = errors.Join(broken, fmt.Errorf("%d of %d peers were not measured: the page says why", len(missing), len(b.Peers)))
	}
	return broken
}

func (b *bench) judgePeer(p Peer, missing string) {
	what := "steady rate against " + p.Name
	if missing != "" {
		b.judge(what, Figure{Value: math.NaN()}, AtLeast(p.Times), "", missing)
		return
	}
	docket, runs := b.runs[besidePeers], b.runs[p.Name]
	b.judge(what, Between(docket, runs, Rates), AtLeast(p.Times), "", p.What)
	b.judge("… in the second half", Between(docket, runs, func(a, b Run) float64 { return a.Warm / b.Warm }), nil, "", "both from half of the rows on")
	b.judge("… its CPU for a decision against Docket's", Between(runs, docket, func(a, b Run) float64 { return a.WorkerCPU() / b.WorkerCPU() }), nil, "%.1f", "from the first row seen to the last")
	b.judge("… its peak memory against Docket's", Between(runs, docket, func(a, b Run) float64 { return float64(a.Peak) / float64(b.Peak) }), nil, "%.1f", "VmHWM")
	b.judge("… from its start to its first row, s", Over(runs, func(r Run) float64 { return r.StartUp.Seconds() }), nil, "%.1f", "")
}

// buildPeers builds those that are wanted. One that cannot be built is told of, by the last line of its build.
func (b *bench) buildPeers(ctx context.Context) (built []Peer, missing map[string]string, err error) {
	missing = map[string]string{}
	for _, folder := range b.Peers {
		p, known := PeerIn(folder)
		if !known {
			return nil, nil, fmt.Errorf("there is no peer %s", folder)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, "./build", b.builtPeer(p))
		cmd.Dir, cmd.Stderr = filepath.Join(peerFolder, folder), io.MultiWriter(os.Stderr, &said)
		if err := cmd.Run(); err != nil {
			lines := strings.Split(strings.TrimSpace(said.String()), "\n")
			missing[folder] = lines[len(lines)-1]
			b.say("%s is not measured: %v", p.Name, err)
			continue
		}
		built = append(built, p)
	}
	return built, missing, nil
}

// builtPeer is where a peer's build goes: into the cache, where there is one.
func (b *bench) builtPeer(p Peer) string {
	cache := os.Getenv("DOCKET_CACHE")
	if cache == "" {
		cache = b.dir
	}
	return filepath.Join(cache, "peers", p.Folder)
}

// starter starts a worker. Its account is called once all rows were seen, while the worker still runs.
type starter func(t topic) (p *process, account func(context.Context) error, err error)

func (b *bench) startDocket(t topic) (*process, func(context.Context) error, error) {
	w, err := b.start(t.name, b.group())
	if err != nil {
		return nil, nil, err
	}
	return w.process, func(ctx context.Context) error {
		defer w.client.CloseIdleConnections()
		l := load{topic: t, homes: map[string]int64{"row": int64(t.decisions)}}
		seen, err := w.atRest(ctx)
		if err != nil {
			return err
		}
		return b.account(ctx, seen, l)
	}, nil
}

func (b *bench) startPeer(p Peer) starter {
	return func(t topic) (*process, func(context.Context) error, error) {
		addr, err := testenv.FreeAddr()
		if err != nil {
			return nil, nil, err
		}
		group := b.group()
		own := filepath.Join(b.dir, p.Folder+"-"+group)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, fmt.Errorf("make a folder for %s: %w", p.Name, err)
		}
		settings, err := PeerEnv{
			Brokers: b.kafka.Brokers(), Topic: t.name, Group: group, DSN: b.dsn, Built: b.builtPeer(p), Folder: own, Addr: addr,
		}.Settings()
		if err != nil {
			return nil, nil, err
		}
		script, err := filepath.Abs(filepath.Join(peerFolder, p.Folder, "start"))
		if err != nil {
			return nil, nil, err
		}
		for _, name := range []string{"PATH", "JAVA_HOME", "PEER_JAVA_OPTIONS"} {
			if value := os.Getenv(name); value != "" {
				settings = append(settings, name+"="+value)
			}
		}
		started, err := launch(p.Name, script, own, own+".log", append(settings, "HOME="+own), p.Ends...)
		return started, func(context.Context) error { return isOneProgram(started) }, err
	}
}

// isOneProgram checks that the script has become the worker: the CPU of a shell beside it would not count.
func isOneProgram(p *process) error {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid()))
	if err != nil {
		return fmt.Errorf("ask for the name of a process: %w", err)
	}
	if strings.TrimSpace(string(name)) == "bash" || strings.TrimSpace(string(name)) == "start" {
		return fmt.Errorf("%s runs below its start script, which has to exec it", p.name)
	}
	return nil
}

// seenDraining lets a worker drain a topic into the empty table, watching the table alone.
func (b *bench) seenDraining(ctx context.Context, t topic, start starter) (run Run, err error) {
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	p, account, err := start(t)
	if err != nil {
		return run, err
	}
	defer p.kill()
	sightings, err := b.watchTable(ctx, p, int64(t.decisions))
	if err != nil {
		return run, err
	}
	if run, err = runOf(sightings, p); err != nil {
		return run, err
	}
	worker, err := processCPU(p.pid())
	if err != nil {
		return run, err
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.since(from, to, worker)
	if run.Peak, err = peakMemory(p.pid()); err != nil {
		return run, err
	}
	return run, errors.Join(account(ctx), p.stop(), b.counted(ctx, int64(t.decisions)))
}

// runOf is what the sightings say.
func runOf(s Sightings, p *process) (run Run, err error) {
	steady, err := s.Steady()
	if err != nil {
		return run, fmt.Errorf("%s: %w", p.name, err)
	}
	warm, err := s.Warm()
	if err != nil {
		return run, fmt.Errorf("%s: %w", p.name, err)
	}
	return Run{
		Rows: s[len(s)-1].Rows, Counted: steady.Rows, Took: steady.Took, Worker: steady.CPU, Warm: warm.Rate(), StartUp: s[0].At.Sub(p.started),
	}, nil
}

// fingerprint is a number that is the same for the same rows, whoever wrote them in whatever order. The time of writing is left out.
// So is the place in Kafka, if it is placeless.
func (b *bench) fingerprint(ctx context.Context, placeless bool) (int64, error) {
	place := ", source_partition, source_offset"
	if placeless {
		place = ""
	}
	return b.number(ctx, `SELECT (sum(hashtextextended(ROW(decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
		labels::jsonb, bundles::jsonb, raw::jsonb, source_topic, source_index`+place+`)::text, 0)::numeric) % 1000000000000000000)::bigint FROM decision_logs`)
}

// sameRows sees, at the first run of each worker, that its rows are Docket's.
func (b *bench) sameRows(ctx context.Context, want int64, p Peer) error {
	if b.columns[p.Name] {
		return nil
	}
	got, err := b.fingerprint(ctx, p.Placeless)
	if err != nil {
		return err
	}
	if got != want {
		return errors.New("the rows are not those that Docket writes of the same topic")
	}
	b.columns[p.Name] = true
	return nil
}
