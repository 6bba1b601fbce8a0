//go:build synctests

package sim

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/testkit/fstest"
)

// evil is a kind of fault.
type evil struct {
	name string
	draw func(dice, *schedule) event // At and Slot are drawn for all kinds; For is if it is left 0
	do   func(*world, event) (heal func())
}

// evils are all kinds; one that is listed twice is twice as likely.
var evils []evil

// byName finds the kind of an event.
var byName = map[string]evil{}

func init() {
	for _, list := range [][]evil{ofProcesses(), ofBrokers(), ofTheNetwork(), ofTheDatabase(), ofDisks(), ofTheLedger()} {
		for _, e := range list {
			name, draw := e.name, e.draw
			e.draw = func(d dice, s *schedule) event {
				var ev event
				if draw != nil {
					ev = draw(d, s)
				}
				ev.What = name
				return ev
			}
			evils, byName[name] = append(evils, e), e
		}
	}
	byName[killAtWork.name], byName[killAtRule.name] = killAtWork, killAtRule
}

// effects draws a number of effects, small ones as likely as large ones.
func effects(d dice) int { return 1 + d.IntN(1<<(1+d.IntN(8))) }

func ofProcesses() []evil {
	when := func(d dice, _ *schedule) event {
		return event{N: effects(d), Arg: one(d, "before", "after"), For: d.between(200*time.Millisecond, 9*time.Second)}
	}
	kill := evil{"kill", when, func(w *world, e event) func() {
		w.slots[e.Slot].strike(e.N, e.Arg == "before", e.For, (*process).kill)
		return nothing
	}}
	return []evil{kill, kill, kill,
		{"power cut", when, func(w *world, e event) func() {
			s := w.slots[e.Slot]
			s.strike(e.N, e.Arg == "before", e.For, func(p *process) { s.powerCut(p, uint64(e.N)+w.plan.Seed) })
			return nothing
		}},
		{"stop", when, func(w *world, e event) func() {
			w.slots[e.Slot].strike(e.N, e.Arg == "before", e.For, (*process).term)
			return nothing
		}},
		{"stop twice", when, func(w *world, e event) func() {
			w.slots[e.Slot].strike(e.N, e.Arg == "before", e.For, func(p *process) {
				p.term()
				p.arm(1+e.N%13, true, (*process).kill)
			})
			return nothing
		}},
		{"stand still", func(d dice, _ *schedule) event {
			return event{N: effects(d), Arg: one(d, "before", "after"), For: d.between(6*time.Second, 12*time.Second)}
		}, func(w *world, e event) func() {
			w.slots[e.Slot].strike(e.N, e.Arg == "before", 0, func(p *process) { p.pause(e.For) })
			return nothing
		}},
		{"leave", nil, func(w *world, e event) func() {
			w.slots[e.Slot].leave()
			return w.slots[e.Slot].comeBack
		}},
	}
}

func pick(d dice, topics ...string) string { return one(d, topics...) }

func ofBrokers() []evil {
	forwards := func(d dice, _ *schedule) event {
		return event{Arg: pick(d, parked, parked, dead, dead, exhausted), N: d.IntN(1000)}
	}
	refuse := func(err ...*kerr.Error) func(*world, event) func() {
		return func(w *world, e event) func() {
			return w.kafka.FailTopic(kmsg.Produce, e.Arg, err[e.N%len(err)], -1).Remove
		}
	}
	key := func(keys ...kmsg.Key) func(dice, *schedule) event {
		return func(d dice, _ *schedule) event {
			return event{N: int(one(d, keys...)), For: d.between(500*time.Millisecond, 6*time.Second)}
		}
	}
	commits := []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.GroupAuthorizationFailed, kerr.RequestTimedOut}
	return []evil{
		{"produce refused", forwards, refuse(kerr.NotEnoughReplicas, kerr.TopicAuthorizationFailed, kerr.NotLeaderForPartition, kerr.KafkaStorageError)},
		{"answer to produce lost", forwards, func(w *world, e event) func() { return w.kafka.LoseAnswers(e.Arg) }},
		{"answered in doubt and not stored", nil, func(w *world, _ event) func() { return w.doubt() }},
		{"stored, then refused", forwards, refuse(kerr.NotEnoughReplicasAfterAppend)},
		{"too large", func(d dice, s *schedule) event {
			e := forwards(d, s)
			e.N = one(d, 1, 2, 4, 8, 30, 100)
			return e
		}, func(w *world, e event) func() {
			return w.kafka.FailTopic(kmsg.Produce, e.Arg, kerr.MessageTooLarge, e.N).Remove
		}},
		{"topic missing", forwards, func(w *world, e event) func() {
			return w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce, kmsg.Metadata}, Topic: e.Arg, Err: kerr.UnknownTopicOrPartition, Count: -1}).Remove
		}},
		{"commit refused", func(d dice, _ *schedule) event { return event{N: d.IntN(len(commits))} }, func(w *world, e event) func() {
			return w.kafka.Fail(kmsg.OffsetCommit, commits[e.N], -1).Remove
		}},
		{"commit fenced", func(d dice, _ *schedule) event { return event{N: 1 + d.IntN(2)} }, func(w *world, e event) func() {
			return w.kafka.Fail(kmsg.OffsetCommit, kerr.UnknownMemberID, e.N).Remove
		}},
		{"mute", key(kmsg.Produce, kmsg.OffsetCommit, kmsg.Fetch, kmsg.Heartbeat, kmsg.JoinGroup, kmsg.OffsetFetch), func(w *world, e event) func() { return w.kafka.Mute(kmsg.Key(e.N)) }},
		{"hang up", key(kmsg.Produce, kmsg.OffsetCommit, kmsg.Fetch, kmsg.Heartbeat, kmsg.SyncGroup, kmsg.Metadata), func(w *world, e event) func() { return w.kafka.HangUp(kmsg.Key(e.N)) }},
		{"coordinator moves", nil, func(w *world, _ event) func() { w.kafka.RehashCoordinators(); return nothing }},
		{"leaders move", func(d dice, _ *schedule) event { return event{N: d.IntN(6)} }, func(w *world, e event) func() {
			for _, topic := range append(w.sources(), parked, dead) {
				for p := range int32(4) {
					_ = w.kafka.MoveTopicPartition(topic, p, (int32(e.N)+p)%int32(w.plan.Brokers)) // a missing partition does not matter
				}
			}
			return nothing
		}},
		{"partitions added", func(d dice, _ *schedule) event { return event{Arg: pick(d, source, parked, dead), N: 1 + d.IntN(2)} }, func(w *world, e event) func() {
			w.running.Go(func() { w.widen(w.laneFor(e), e.N) })
			return nothing
		}},
	}
}

func ofTheNetwork() []evil {
	kinds := func(d dice, _ *schedule) event {
		return event{Arg: one(d, toKafka, toDatabase), N: 2 + d.IntN(20)}
	}
	return []evil{
		{"dials refused", kinds, func(w *world, e event) func() { return w.net.refuse(e.Arg) }},
		{"away", kinds, func(w *world, e event) func() {
			heal := w.net.refuse(e.Arg)
			w.cut(e.Arg)
			return heal
		}},
		{"connections cut", kinds, func(w *world, e event) func() { w.cut(e.Arg); return nothing }},
		{"writes cut", kinds, func(w *world, e event) func() { return w.net.tear(e.Arg, e.N) }},
		{"slow network", kinds, func(w *world, e event) func() {
			return w.net.delay(e.Arg, time.Duration(e.N)*20*time.Millisecond)
		}},
		{"black hole", func(d dice, s *schedule) event {
			e := kinds(d, s)
			e.For = d.between(500*time.Millisecond, 5*time.Second)
			return e
		}, func(w *world, e event) func() { return w.net.swallow(e.Arg) }},
	}
}

// doubt makes the brokers drop every produce request and answer that its result is unknown.
func (w *world) doubt() (heal func()) {
	var healed atomic.Bool
	w.kafka.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if healed.Load() {
			w.kafka.DropControl()
			return nil, nil, false
		}
		w.kafka.KeepControl()
		req := r.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range req.Topics {
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, kerr.RequestTimedOut.Code
				topic.Partitions = append(topic.Partitions, part)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	return func() { healed.Store(true) }
}

// widen adds partitions to a topic, like an operator.
func (w *world) widen(topic string, more int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := w.kafka.Client(w.t)
	defer client.Close()
	if _, err := kadm.NewClient(client).CreatePartitions(ctx, more, topic); err != nil {
		w.history.add("partitions not added", topic, err.Error())
	}
}

func (w *world) cut(kind string) {
	for _, s := range w.slots {
		if p := s.process(); p != nil {
			p.cut(kind)
		}
	}
}

var diskOps = []fstest.Op{fstest.OpAny, fstest.OpCreate, fstest.OpWrite, fstest.OpSync, fstest.OpRename, fstest.OpRemove, fstest.OpSyncDir, fstest.OpReadDir, fstest.OpOpen, fstest.OpRead}

func ofDisks() []evil {
	draw := func(d dice, _ *schedule) event {
		return event{Arg: one(d, "once", "for ever", "for ever"), N: d.IntN(1000)}
	}
	appending := []fstest.Op{fstest.OpAny, fstest.OpCreate, fstest.OpWrite, fstest.OpSync, fstest.OpRename, fstest.OpSyncDir}
	both := evil{"Kafka and the disks fail", draw, func(w *world, e event) func() {
		for _, s := range w.slots {
			s.fs().Fail(fstest.Fault{Op: appending[e.N%len(appending)], N: 1, Err: fstest.Errnos[e.N%len(fstest.Errnos)], Forever: true})
		}
		refused := kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: parked, Err: kerr.NotEnoughReplicas, Count: -1}
		also := refused
		also.Topic = dead
		heal := w.kafka.Fault(refused, also)
		return func() {
			heal.Remove()
			for _, s := range w.slots {
				s.fs().Heal()
			}
		}
	}}
	return []evil{
		{"disk fails", draw, func(w *world, e event) func() {
			fs := w.slots[e.Slot].fs()
			fs.Fail(fstest.Fault{Op: diskOps[e.N%len(diskOps)], N: 1 + e.N%3, Err: fstest.Errnos[e.N%len(fstest.Errnos)], Forever: e.Arg == "for ever"})
			return func() { fs.Heal(); w.slots[e.Slot].fs().Heal() }
		}},
		both, both, both,
		{"slow disk", draw, func(w *world, e event) func() {
			fs, op := w.slots[e.Slot].fs(), diskOps[1+e.N%(len(diskOps)-1)]
			fs.Slow(op, time.Duration(1+e.N%700)*time.Millisecond)
			return func() { fs.Slow(op, 0) }
		}},
	}
}

func (e event) key() string { return e.What + " " + e.Arg + " " + strconv.Itoa(e.N) }

// happen plays the events and ends them, each at its time.
func (w *world) happen() {
	var healing []func()
	done := make(chan func(), len(w.plan.Events))
	for _, e := range w.plan.Events {
		w.until(e.At)
		w.history.add(e.What, "", fmt.Sprintf("%s slot=%d n=%d for=%v", e.Arg, e.Slot, e.N, e.For))
		heal := byName[e.What].do(w, e)
		healing = append(healing, heal)
		w.later(e.For, func() {
			heal()
			w.history.add("healed", "", e.key())
			done <- heal
		})
	}
	for range healing {
		<-done
	}
}
