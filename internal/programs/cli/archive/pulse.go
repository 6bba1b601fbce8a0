package archive

import (
	"sync"
	"time"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/term"
)

// How often a restore says where it is: on a terminal, and elsewhere.
const (
	pulseSeen = 5 * time.Second
	pulseLog  = 30 * time.Second
)

// pulse says from time to time where a long command is, so that a wait for a lock is not silence.
type pulse struct {
	b       *base
	about   string        // the day
	waiting func() string // says which limit it waits for, empty for none; nil without limits
	began   time.Time
	stop    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	act     string
	batches int64
}

// pulse makes a pulse that does not beat yet.
func (b *base) pulse(about, act string) *pulse {
	return &pulse{b: b, about: about, act: act, stop: make(chan struct{}), done: make(chan struct{})}
}

// beat begins to report. end has to be called.
func (p *pulse) beat() {
	p.began = time.Now()
	every := pulseLog
	if p.b.Terminal.Err {
		every = pulseSeen
	}
	go p.run(every)
}

func (p *pulse) run(every time.Duration) {
	defer close(p.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.say()
		}
	}
}

func (p *pulse) say() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.act
	if p.batches > 0 {
		text += ", " + batchesText(p.batches) + " so far"
	}
	if p.waiting != nil {
		if wait := p.waiting(); wait != "" {
			text += "; " + wait
		}
	}
	p.b.Tell("%s: %s (%s)\n", p.about, text, time.Since(p.began).Truncate(time.Second))
}

func batchesText(n int64) string {
	if n == 1 {
		return "1 batch"
	}
	return term.Grouped(n) + " batches"
}

// restoring are the acts that follow the steps of a restore.
var restoring = map[archive.Step]string{
	archive.StepTaken:    "reading and checking the archives",
	archive.StepVerified: "making the partition of the day; it waits for a lock on decision_logs if others use it",
	archive.StepOpened:   "storing the first batch of rows",
	archive.StepReading:  "storing rows",
	archive.StepLoaded:   "counting the rows",
}

// reach notes a step. then is called under the same lock, so that lines do not mix.
func (p *pulse) reach(step archive.Step, then func(archive.Step)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if act, known := restoring[step]; known {
		p.act = act
	}
	switch step {
	case archive.StepReading:
		p.batches++
	case archive.StepLoaded:
		p.batches = 0
	}
	if then != nil {
		then(step)
	}
}

// end ends the reports.
func (p *pulse) end() {
	close(p.stop)
	<-p.done
}
