//go:build synctests

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"docket/internal/fallback"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/fstest"
)

// slot is where processes of a program run one after another, on one disk.
type slot struct {
	w        *world
	number   int
	program  config.Program
	name     string
	settings config.Settings

	mu    sync.Mutex
	disk  *fstest.FS
	now   *process // nil between two lives
	lives int
	away  time.Duration // how long the next life waits
	out   bool          // the member has left until the faults end
	back  chan struct{}
}

func newSlot(w *world, n int) *slot {
	s := &slot{w: w, number: n, program: config.Consumer, disk: fstest.New(), back: make(chan struct{}, 1)}
	s.name = "consumer-" + strconv.Itoa(n)
	if n >= w.plan.Consumers {
		s.program, s.name = config.Replayer, "replayer-"+strconv.Itoa(n-w.plan.Consumers)
	}
	if first := w.plan.Consumers + w.plan.Replayers; n >= first {
		s.program, s.name = config.Desk, "desk-"+strconv.Itoa(n-first)
	}
	s.settings = w.configure(s.program, n)
	return s
}

// run keeps a process alive until the world closes.
func (s *slot) run() {
	wait := s.w.plan.Starts[s.number]
	for {
		select {
		case <-s.w.closing:
			return
		case <-s.back:
		case <-time.After(wait):
		}
		s.mu.Lock()
		out := s.out
		s.mu.Unlock()
		if out {
			wait = time.Second
			continue
		}
		wait = s.live()
	}
}

// rigor is how long stuck goroutines of a dead process may take to notice.
const rigor = time.Minute

// live is one life of a process. It returns how long the next one has to wait.
func (s *slot) live() time.Duration {
	p, err := s.start()
	if err != nil {
		s.w.history.add("did not start", s.name, err.Error())
		if spool := (*app.SpoolError)(nil); !errors.As(err, &spool) {
			s.w.found(fmt.Sprintf("%s did not start: %v", s.name, err))
		}
		return time.Second
	}
	select {
	case <-p.ended:
	case <-p.killed:
	case <-s.w.closing:
		p.term()
		<-p.ended
	}
	s.mu.Lock()
	s.now = nil
	wait := max(s.away, 50*time.Millisecond)
	s.away = 0
	s.mu.Unlock()
	return wait
}

// start opens and runs a process.
func (s *slot) start() (*process, error) {
	s.mu.Lock()
	s.lives++
	name := s.name + "-" + strconv.Itoa(s.lives)
	under := s.disk
	s.mu.Unlock()
	w := s.w
	ctx, stop := context.WithCancel(context.Background())
	p := &process{
		w: w, slot: s, name: name, settings: s.settings, registry: prometheus.NewRegistry(),
		stop: stop, ended: make(chan struct{}), killed: make(chan struct{}), began: time.Now(),
	}
	p.shown = &shown{p: p}
	var log io.Writer = p.shown
	if w.logs != nil {
		log = zerolog.MultiLevelWriter(p.shown, w.logs)
	}
	w.enter(p)
	run, err := p.open(under, zerolog.New(log))
	if err != nil {
		stop()
		p.kill() // gives the lock back
		p.endedAt = time.Now()
		close(p.ended)
		return nil, err
	}
	s.mu.Lock()
	s.now = p
	s.mu.Unlock()
	w.history.add("started", name, "")
	w.running.Go(func() {
		defer close(p.ended)
		p.err = run.Run(ctx)
		p.endedAt = time.Now()
		if errors.Is(p.err, app.ErrWedged) || errors.Is(p.err, app.ErrOverdue) {
			p.kill() // the real program exits without closing, because closing would wait for stuck goroutines
			time.Sleep(rigor)
		}
		if left := p.unaccounted(); left != 0 && !p.isDead() {
			w.found(fmt.Sprintf("I15 visible: %s ended and could not account for %v decisions", name, left))
		}
		run.Close()
		p.wake()
		w.history.add("ended", name, fmt.Sprint(p.err))
		if p.err != nil && !p.wasStopped() {
			w.found(fmt.Sprintf("%s ended by itself: %v", name, p.err))
		}
	})
	return p, nil
}

// runner is a program.
type runner interface {
	Run(ctx context.Context) error
	Close()
}

// open opens the program of a process.
func (p *process) open(under *fstest.FS, log zerolog.Logger) (runner, error) {
	w := p.w
	if p.slot.program == config.Desk {
		return newDeskProgram(p, log)
	}
	program, err := app.New(p.slot.program, p.settings, log, p.registry, app.Options{
		Instance: p.name, DialKafka: p.dialer(toKafka, w.wires.Dial), DialDatabase: p.dialer(toDatabase, w.db.Dial),
		Disk: fallback.FS(disk{p, under}), Listen: func(string, string) (net.Listener, error) { return newNetwork().Listen("", "localhost:80") },
		Decided: w.decided,
	})
	if err != nil {
		return nil, err
	}
	p.program = program
	// They describe this test and not the program, and reading /proc costs more than all other metrics.
	p.registry.Unregister(collectors.NewGoCollector())
	p.registry.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return program, nil
}

// process returns the living process, nil if there is none.
func (s *slot) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.now.isDead() {
		return nil
	}
	return s.now
}

// strike arms a fault at the n-th effect of the living process. Its next life begins after away.
func (s *slot) strike(n int, before bool, away time.Duration, do func(*process)) {
	p := s.process()
	if p == nil {
		return
	}
	p.arm(n, before, func(p *process) {
		s.mu.Lock()
		s.away = away
		s.mu.Unlock()
		do(p)
	})
}

// powerCut kills the process, and applies a power cut to the disk.
func (s *slot) powerCut(p *process, seed uint64) {
	p.kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	how := fstest.Aftermath(rand.New(rand.NewPCG(seed, 3)).IntN(4))
	s.disk = s.disk.Reboot(how, seed)
	s.w.history.add("power cut", s.name, strconv.Itoa(int(how)))
}

// leave removes the member until return.
func (s *slot) leave() {
	s.mu.Lock()
	s.out = true
	p := s.now
	s.mu.Unlock()
	if p != nil {
		p.term()
	}
}

func (s *slot) comeBack() {
	s.mu.Lock()
	s.out = false
	s.mu.Unlock()
	select {
	case s.back <- struct{}{}:
	default:
	}
}

func (s *slot) fs() *fstest.FS {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disk
}

// spooled returns the data files in the spool that are not in corrupt/.
func (s *slot) spooled() []string { return s.files(".jsonl.gz") }

// unfinished returns the names of unfinished files in its spool.
func (s *slot) unfinished() []string { return s.files(".tmp") }

func (s *slot) files(suffix string) (files []string) {
	for _, name := range s.fs().Files(".") {
		if strings.HasSuffix(name, suffix) {
			files = append(files, name)
		}
	}
	return files
}
