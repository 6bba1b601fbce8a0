package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"docket/internal/audit/conservation"
)

// programs are the programs of Docket while they run.
type programs struct {
	names  []string          // in the order of their start
	gauges map[string]*gauge // by name
	cancel context.CancelFunc
	wait   sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// String lists the programs as a user starts them.
func (p *programs) String() string {
	return strings.Replace(strings.Join(p.names, ", "), Desk, "docket desk", 1)
}

// maxRecordBytes is small, so that a record that is too large is small as well.
const maxRecordBytes = 1 << 20

// recordLimit is the setting of it.
var recordLimit = fmt.Sprintf("DOCKET_MAX_RECORD_BYTES=%dKiB", maxRecordBytes>>10)

// settings returns the environment of a program: defaults, except for addresses and for shorter pauses. The desk
// serves no API and retries nothing, so that nothing moves while the dead letters are counted.
func settings(program string, at conservation.Places, dir, httpAddr string) []string {
	return []string{
		"DOCKET_KAFKA_BROKERS=" + strings.Join(at.Brokers, ","),
		"DOCKET_KAFKA_TOPIC=" + at.Topic,
		"DOCKET_KAFKA_GROUP=" + at.Group,
		"DOCKET_KAFKA_PARKING_TOPIC=" + at.ParkingTopic,
		"DOCKET_PARKING_GROUP=" + at.ParkingGroup,
		"DOCKET_KAFKA_DLQ_TOPIC=" + at.DLQTopic,
		"DOCKET_KAFKA_PARKING_DLQ_TOPIC=" + at.ParkingDLQ,
		"DOCKET_DATABASE_URL=" + at.DatabaseURL,
		"DOCKET_SPOOL_DIR=" + spoolDir(dir, program),
		"DOCKET_HTTP_ADDR=" + httpAddr,
		recordLimit,
		"DOCKET_BATCH_MAX_RECORDS=500",
		"DOCKET_RETRY_PAUSES=500ms,1s",
		"DOCKET_PARKING_BACKOFF=2s",
		"DOCKET_PARKING_MAX_BACKOFF=10s",
		"DOCKET_PROBE_INTERVAL=500ms",
		"DOCKET_SHUTDOWN_TIMEOUT=10s",
		"DOCKET_LOG_FORMAT=json",
		"DOCKET_DESK_API_ADDR=",
		"DOCKET_DESK_RETRY_KINDS=",
		"DOCKET_STATES=true",
	}
}

// launch starts the programs. ended is called when one of them ends before it is told to.
func launch(ctx context.Context, cfg Config, at conservation.Places, ended func(error)) (*programs, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &programs{names: []string{Consumer, Replayer, Desk}, gauges: make(map[string]*gauge), cancel: cancel}
	if cfg.NoDesk {
		p.names = p.names[:2]
	}
	for _, name := range p.names {
		port, err := freePort()
		if err != nil {
			return nil, errors.Join(err, p.stop())
		}
		log, err := os.OpenFile(logPath(cfg.Dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the log of %s: %w", name, err), p.stop())
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		p.gauges[name] = newGauge("http://" + addr)
		program := Program{Name: name, Environ: settings(name, at, cfg.Dir, addr), Log: log}
		p.wait.Go(func() {
			err := cfg.Launch(ctx, program)
			if err != nil {
				err = fmt.Errorf("%s failed: %w", name, err)
			} else if ctx.Err() == nil {
				err = fmt.Errorf("%s ended without a signal", name)
			}
			err = errors.Join(err, log.Close())
			p.mu.Lock()
			p.errs = append(p.errs, err)
			p.mu.Unlock()
			if ctx.Err() == nil {
				ended(err)
			}
		})
	}
	return p, nil
}

func logPath(dir, program string) string { return filepath.Join(dir, program+".log") }

// ready waits until /readyz of every program answers 200.
func (p *programs) ready(ctx context.Context) error {
	for name, g := range p.gauges {
		if err := waitFor(ctx, time.Minute, g.ready); err != nil {
			return fmt.Errorf("wait for %s to be ready: %w", name, err)
		}
	}
	return nil
}

// stop stops the programs, waits for them, and returns their errors.
func (p *programs) stop() error {
	p.cancel()
	p.wait.Wait()
	for _, g := range p.gauges {
		g.close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.errs...)
	p.errs = nil
	return err
}
