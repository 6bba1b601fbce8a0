//go:build synctests

package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"docket/internal/home"
)

// patience is what settling may take after the last heal (I14), beside the longest rest of a parked record: the minute
// that was promised, and what the group takes to find out that a member is gone.
const patience = 60*time.Second + 2*longestRest

const glance = 100 * time.Millisecond

// settle waits until everything has its last home.
func (w *world) settle() {
	from := time.Now()
	var restarted time.Time
	for {
		why := w.unsettled()
		if why == "" {
			break
		}
		if time.Since(from) > patience {
			w.found("I14: not settled in time: " + why)
			return
		}
		if strings.HasPrefix(why, "oversize") && time.Since(restarted) > 10*time.Second {
			restarted = time.Now()
			w.restartOversize()
		}
		time.Sleep(glance)
	}
	w.history.add("settled", "", "")
	w.calm()
}

// unsettled says what is still on its way.
func (w *world) unsettled() string {
	w.mu.Lock()
	feeding := w.feeding
	w.mu.Unlock()
	if feeding {
		return "records are still being produced"
	}
	for _, g := range [][2]string{{consumers, source}, {replayers, parked}} {
		done := committed(w.kafka.Cluster, g[0], g[1])
		for p, end := range ends(w.kafka.Cluster, g[1]) {
			if done[p] < end {
				return fmt.Sprintf("%s committed %d of %d in partition %d", g[0], done[p], end, p)
			}
		}
	}
	oversize := ""
	for _, s := range w.slots {
		for _, name := range s.spooled() {
			if !strings.Contains(name, ".oversize") {
				return fmt.Sprintf("%s has %s in its spool", s.name, name)
			}
			oversize = "oversize records wait in the spool of " + s.name
		}
		if s.process() == nil {
			return s.name + " is not running"
		}
	}
	return oversize
}

// restartOversize restarts who has oversize records: they are tried again at a start, and else only every hour.
func (w *world) restartOversize() {
	for _, s := range w.slots {
		if p := s.process(); p != nil && len(s.spooled()) > 0 {
			p.term()
		}
	}
}

// calm looks at the processes when nothing moves any more: none holds, and each can account for all that it read.
func (w *world) calm() {
	for _, s := range w.slots {
		p := s.process()
		if p == nil {
			continue
		}
		for n := 0; !p.program.Readiness().Ready && n < 300; n++ {
			time.Sleep(glance)
		}
		if r := p.program.Readiness(); !r.Ready && !p.wasStopped() {
			w.found(fmt.Sprintf("%s is not ready although all is healed: %+v", p.name, r.Reasons))
		}
		if h := p.program.Health(); !h.Healthy {
			w.found(fmt.Sprintf("%s is not healthy although all is healed: %+v", p.name, h.Reasons))
		}
		if left := p.unaccounted(); left != 0 {
			w.found(fmt.Sprintf("I15: %s cannot account for %v decisions", p.name, left))
		}
	}
	for _, s := range w.slots {
		for _, name := range s.fs().Files(".") {
			if strings.HasSuffix(name, ".tmp") {
				w.found("I17: " + s.name + " left " + name)
			}
		}
	}
}

// unaccounted is docket_unaccounted_records.
func (p *process) unaccounted() float64 {
	families, err := p.registry.Gather()
	if err != nil {
		p.w.found("metrics: " + err.Error())
	}
	for _, f := range families {
		if f.GetName() == "docket_unaccounted_records" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	p.w.found("metrics: docket_unaccounted_records is missing")
	return 0
}

var (
	_ = context.Background
	_ = home.Row
)
