//go:build integration

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"docket/internal/testkit/testenv"
)

// worker is a running consumer or replayer, with its default settings but for addresses and names.
type worker struct {
	*process
	addr   string
	client *http.Client
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
	// Compressed answers would cost the worker more than all else that is asked of it.
	w := &worker{addr: addr, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableCompression: true}}}
	env := append([]string{
		"HOME=" + b.dir, "DOCKET_KAFKA_BROKERS=" + strings.Join(b.kafka.Brokers(), ","), "DOCKET_DATABASE_URL=" + b.dsn,
		"DOCKET_HTTP_ADDR=" + addr, "DOCKET_SPOOL_DIR=" + filepath.Join(b.dir, "spool-"+name),
	}, settings...)
	if w.process, err = launch("the worker", program, b.dir, filepath.Join(b.dir, name+".log"), env); err != nil {
		return nil, err
	}
	return w, nil
}

// stop ends the worker in order.
func (w *worker) stop() error {
	defer w.client.CloseIdleConnections()
	return w.process.stop()
}

// kill ends the worker at once; one that has ended is left as it is.
func (w *worker) kill() {
	w.process.kill()
	w.client.CloseIdleConnections()
}

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

// sum is that of all series of a name, whatever their labels.
func (s series) sum(name string) (sum float64) {
	for series, value := range s {
		if short, _, _ := strings.Cut(series, "{"); short == name {
			sum += value
		}
	}
	return sum
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
