//go:build synctests

package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/audit/verify"
)

// patience is the allowed time after the last fault (I14), besides the longest pause of a parked record. It is the
// promised minute, and the time in which the group notices a lost member.
const patience = 60*time.Second + 2*longestRest

// limitedPatience comes on top with a limit: a replayer has a twentieth of the rows of schedule.limitDrawn.
const limitedPatience = time.Minute

const glance = 100 * time.Millisecond

// settle waits until everything has its last home.
func (w *world) settle() {
	from := time.Now()
	var restarted time.Time
	swept, allowed := false, patience
	if w.plan.Limited {
		allowed += limitedPatience
	}
	for {
		why := w.unsettled()
		if why == "" && w.plan.Desks > 0 && w.plan.Sweep && !swept {
			swept = true
			if w.plan.ByJob {
				w.order(order{})
			} else {
				w.decide(decided{Many: 1 << 20})
			}
			continue
		}
		if why == "" {
			break
		}
		if time.Since(from) > allowed {
			w.found("I14: not settled in time: " + why)
			return
		}
		if strings.HasPrefix(why, "oversize") && time.Since(restarted) > 10*time.Second {
			restarted = time.Now()
			w.restartOversize()
		}
		w.unstick()
		time.Sleep(glance)
	}
	w.settled = time.Now()
	w.history.add("settled", "", "")
	w.calm()
}

// unsettled describes records that are still moving.
func (w *world) unsettled() string {
	w.mu.Lock()
	feeding := w.feeding
	w.mu.Unlock()
	if feeding {
		return "records are still being produced"
	}
	for _, g := range append(w.lanes, lane{parked, replayers}) {
		done := committed(w.kafka.Cluster, g.group, g.topic)
		for p, end := range ends(w.kafka.Cluster, g.topic) {
			if done[p] < end {
				return fmt.Sprintf("%s committed %d of %d in partition %d", g.group, done[p], end, p)
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
		if n := len(durable(s)); n > 0 && len(s.spooled()) == 0 {
			return fmt.Sprintf("a power cut would bring %d records back into the spool of %s", n, s.name)
		}
		if len(s.unfinished()) > 0 {
			return s.name + " has an unfinished file in its spool"
		}
		p := s.process()
		if p == nil {
			return s.name + " is not running"
		}
		if p.standsStill() {
			return p.name + " stands still"
		}
	}
	if oversize != "" {
		return oversize
	}
	return w.deskUnsettled()
}

// restartOversize restarts programs with oversize records, which are retried at a start, or else only every hour.
func (w *world) restartOversize() {
	for _, s := range w.slots {
		if p := s.process(); p != nil && len(s.spooled()) > 0 {
			p.term()
		}
	}
}

// rebalanced limits a rebalance in these schedules.
const rebalanced = 20 * time.Second

// unstick corrects two faults of the fake. A rebalance should end after the rebalance timeout, even if some members
// do not join. In the fake each late member restarts the timeout, so that members can wait for each other for ever.
// The fake also never misses the heartbeats of a member that died while it joined.
func (w *world) unstick() {
	mosts := map[string]int{replayers: w.plan.Replayers, desks: 2 * w.plan.Desks} // a desk reads two topics
	for _, l := range w.lanes {
		mosts[l.group] = w.plan.Consumers
	}
	for _, group := range slices.Sorted(maps.Keys(mosts)) {
		most := mosts[group]
		info := w.kafka.GroupInfo(group)
		if info == nil || len(info.Members) <= most && (info.State == "Stable" || info.State == "Empty") {
			delete(w.unrest, group)
			continue
		}
		if began, ok := w.unrest[group]; !ok || began.epoch != info.Epoch {
			w.unrest[group] = unrest{info.Epoch, time.Now()}
		} else if time.Since(began.since) > rebalanced {
			delete(w.unrest, group)
			w.evict(group, info)
		}
	}
}

// unrest is a rebalance that was seen.
type unrest struct {
	epoch int32
	since time.Time
}

func (w *world) evict(group string, info *kfake.GroupInfo) {
	w.history.add("evicts the members of", "harness", group)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group
	for _, m := range info.Members {
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = m.MemberID
		leave.Members = append(leave.Members, one)
	}
	if _, err := leave.RequestWith(context.Background(), w.feeder); err != nil {
		w.found("the harness could not evict members: " + err.Error())
	}
}

// calm checks the processes when nothing moves any more: none holds, and each can account for all that it read.
func (w *world) calm() {
	for _, s := range w.slots {
		p := s.process()
		if p == nil || p.program == nil {
			continue
		}
		for from := time.Now(); !p.program.Readiness().Ready && time.Since(from) < patience; time.Sleep(glance) {
			w.unstick()
		}
		if r := p.program.Readiness(); !r.Ready && !p.wasStopped() {
			w.found(fmt.Sprintf("%s is not ready although all is healed: %+v", p.name, r.Reasons))
		}
		if h := p.program.Health(); !h.Healthy {
			w.found(fmt.Sprintf("%s is not healthy although all is healed: %+v", p.name, h.Reasons))
		}
		w.metrics[p.name] = verify.Metrics{"docket_unaccounted_records": p.unaccounted()}
	}
}

// unaccounted is docket_unaccounted_records.
func (p *process) unaccounted() float64 {
	if p.program == nil {
		return 0
	}
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
