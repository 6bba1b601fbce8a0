//go:build integration

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"docket/internal/testenv"
)

// stuck is how long a worker may bring nothing home before the run counts as broken.
const stuck = 2 * time.Minute

// worker is a running consumer or replayer, with its default settings but for addresses and names.
type worker struct {
	cmd     *exec.Cmd
	addr    string
	client  *http.Client
	log     string
	started time.Time
	ended   chan struct{}
}

// group returns a name that no group had before.
func (b *bench) group() string {
	b.started++
	return fmt.Sprintf("bench-%d", b.started)
}

// start starts a consumer of a topic. Settings come behind the defaults.
func (b *bench) start(topic, group string, settings ...string) (*worker, error) {
	return b.launch(b.bin, append([]string{"DOCKET_KAFKA_TOPIC=" + topic, "DOCKET_KAFKA_GROUP=" + group}, settings...)...)
}

// launch starts a program.
func (b *bench) launch(program string, settings ...string) (*worker, error) {
	b.started++
	name := fmt.Sprintf("%s-%d", filepath.Base(program), b.started)
	addr, err := testenv.FreeAddr()
	if err != nil {
		return nil, err
	}
	w := &worker{
		addr: addr, log: filepath.Join(b.dir, name+".log"), ended: make(chan struct{}),
		client: &http.Client{Timeout: 10 * time.Second},
	}
	log, err := os.Create(w.log)
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	w.cmd = exec.Command(program) // ended by stop or kill, in order
	w.cmd.Dir, w.cmd.Stdout, w.cmd.Stderr = b.dir, log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.cmd.Env = append([]string{
		"HOME=" + b.dir, "DOCKET_KAFKA_BROKERS=" + strings.Join(b.kafka.Brokers(), ","), "DOCKET_DATABASE_URL=" + b.dsn,
		"DOCKET_HTTP_ADDR=" + addr, "DOCKET_SPOOL_DIR=" + filepath.Join(b.dir, "spool-"+name),
	}, settings...)
	w.started = time.Now()
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, errors.Join(err, log.Close()))
	}
	go func() {
		_ = w.cmd.Wait() // how it ended is in ProcessState, which stop and until look at
		_ = log.Close()  // the worker had its own handle of it
		close(w.ended)
	}()
	return w, nil
}

// stop ends the worker in order.
func (w *worker) stop() error {
	defer w.client.CloseIdleConnections()
	_ = w.cmd.Process.Signal(syscall.SIGTERM) // fails only for one that has ended, whose exit code comes next
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		w.kill()
		return fmt.Errorf("the worker did not end within a minute, see %s", w.log)
	}
	if code := w.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the worker ended with %d, see %s", code, w.log)
	}
	return nil
}

// kill ends the worker at once; one that has ended is left as it is.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // fails only for one that has ended
	<-w.ended
	w.client.CloseIdleConnections()
}

// used is the processor time of a worker that has ended, by the kernel's books: start and end included.
func (w *worker) used() time.Duration {
	return w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()
}

func (w *worker) pid() int { return w.cmd.Process.Pid }

// get asks the worker over HTTP.
func (w *worker) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.addr+path, nil)
	if err != nil {
		return nil, err
	}
	return w.client.Do(req)
}

// series are the values of /metrics that begin with docket_, by name and labels.
type series map[string]float64

const homed = `docket_records_total{home="`

// home is how many decisions have got that home.
func (s series) home(name string) int64 { return int64(s[homed+name+`"}`]) }

// homes is how many have got any.
func (s series) homes() (n int64) {
	for name, value := range s {
		if strings.HasPrefix(name, homed) {
			n += int64(value)
		}
	}
	return n
}

func (w *worker) metrics(ctx context.Context) (series, error) {
	resp, err := w.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	found := series{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(name, "docket_") {
			continue
		}
		if found[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
	}
	if err := lines.Err(); err != nil { // half an answer would count what is missing as zero
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return found, nil
}

// ready says whether the worker has its partitions and does not hold.
func (w *worker) ready(ctx context.Context) bool {
	resp, err := w.get(ctx, "/readyz")
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again; the status is all that counts
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// awaitReady returns when the worker was first seen to have its partitions: from then on it fetches.
func (w *worker) awaitReady(ctx context.Context) (time.Time, error) {
	err := w.until(ctx, stuck, 2*time.Millisecond, func() (bool, error) { return w.ready(ctx), nil })
	return time.Now(), err
}

// until asks again and again, until done, an error, the worker's end or the limit, at which it counts as stuck.
func (w *worker) until(ctx context.Context, limit, pause time.Duration, done func() (bool, error)) error {
	deadline := time.After(limit)
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return fmt.Errorf("the worker has ended, see %s", w.log)
		case <-deadline:
			return fmt.Errorf("the worker is stuck, see %s", w.log)
		case <-time.After(pause):
		}
	}
}
