package chaos

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

var everything = Parts{Disks: true, Standby: true, Lanes: true}

func TestPlan_SameSeedSamePlan(t *testing.T) {
	t.Parallel()
	one, two := Plan(7, time.Hour, Kinds(everything)), Plan(7, time.Hour, Kinds(everything))
	if !reflect.DeepEqual(one, two) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(one, Plan(8, time.Hour, Kinds(everything))) {
		t.Error("two seeds give one plan")
	}
}

func TestPlan_ThreeDifferentPartsAtMost(t *testing.T) {
	t.Parallel()
	kinds := byName(t)
	for seed := range uint64(20) {
		plan := Plan(seed, 30*time.Minute, Kinds(everything))
		for i, f := range plan {
			if f.Start < 0 || f.Start+f.Length > 30*time.Minute {
				t.Fatalf("seed %d: %+v is outside", seed, f)
			}
			together := 1
			for _, other := range plan[:i] {
				if other.Start+other.Length <= f.Start || f.Start+f.Length <= other.Start {
					continue
				}
				together++
				for _, held := range kinds[f.Kind].Holds(f.Target) {
					if slices.Contains(kinds[other.Kind].Holds(other.Target), held) {
						t.Fatalf("seed %d: %+v and %+v both hold %s", seed, f, other, held)
					}
				}
			}
			if together > mostAtOnce {
				t.Fatalf("seed %d: %d at once with %+v", seed, together, f)
			}
		}
	}
}

func TestPlan_EachGroupAndEachKind(t *testing.T) {
	t.Parallel()
	kinds := byName(t)
	groups, planned, long := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, k := range Kinds(Parts{Disks: true}) {
		groups[k.Group] = true
	}
	for _, f := range Plan(1, shortCampaign, Kinds(Parts{Disks: true})) {
		planned[kinds[f.Kind].Group] = true
	}
	for group := range groups {
		if !planned[group] {
			t.Errorf("the short plan has nothing of %q", group)
		}
	}
	for _, f := range Plan(1, 20*time.Minute, Kinds(everything)) {
		long[f.Kind] = true
	}
	for name := range kinds {
		if !long[name] {
			t.Errorf("20 minutes have nothing of %q", name)
		}
	}
}

// TestPlan_LanesAreFaultsOfTheirOwn: a campaign without lanes has the plan that it had before there were lanes.
func TestPlan_LanesAreFaultsOfTheirOwn(t *testing.T) {
	t.Parallel()
	of := map[bool]map[string]bool{true: {}, false: {}}
	for with, names := range of {
		for _, k := range Kinds(Parts{Disks: true, Lanes: with}) {
			names[k.Name] = true
		}
	}
	for _, k := range laneKinds() {
		if of[false][k.Name] || !of[true][k.Name] {
			t.Errorf("%q without lanes %t, with lanes %t", k.Name, of[false][k.Name], of[true][k.Name])
		}
		delete(of[true], k.Name)
	}
	if !reflect.DeepEqual(of[true], of[false]) {
		t.Error("lanes change the other faults")
	}
	for _, name := range awayKinds {
		if k := byName(t)[name]; k.Group != "Redis" && k.Group != "wire to Redis" {
			t.Errorf("%q is a fault of %q", name, k.Group)
		}
	}
}

// TestLaneUnread_HoldsItsWire: it never overlaps with a fault of the wire that it cuts, nor with other leaders.
func TestLaneUnread_HoldsItsWire(t *testing.T) {
	t.Parallel()
	kinds := byName(t)
	unread, moved, dead := kinds[LaneUnread], kinds["leaders moved"], kinds["broker killed"]
	for target := range unread.Targets {
		holds := unread.Holds(target)
		for _, held := range slices.Concat(kinds["broker: latency"].Holds(target%Brokers), moved.Holds(0), dead.Holds(0)) {
			if !slices.Contains(holds, held) {
				t.Errorf("target %d holds %v, and not %s", target, holds, held)
			}
		}
	}
}

// TestLaneOf_EachLaneHasItsShare: a key has one lane, and each lane has many keys.
func TestLaneOf_EachLaneHasItsShare(t *testing.T) {
	t.Parallel()
	const keys = 4000
	var got [laneCount]int
	for n := range keys {
		key := []byte(strconv.Itoa(n))
		if LaneOf(key) != LaneOf(slices.Clone(key)) {
			t.Fatalf("key %d has two lanes", n)
		}
		got[LaneOf(key)]++
	}
	for lane, part := range [laneCount]int{defaultLane: 2, urgentLane: 4, bulkLane: 4} {
		if want := keys / part; got[lane] < want*9/10 || got[lane] > want*11/10 {
			t.Errorf("lane %d has %d keys, want about %d", lane, got[lane], want)
		}
	}
}

func byName(t *testing.T) map[string]Kind {
	t.Helper()
	kinds := map[string]Kind{}
	for _, k := range Kinds(everything) {
		if _, twice := kinds[k.Name]; twice {
			t.Fatalf("two kinds are called %q", k.Name)
		}
		kinds[k.Name] = k
	}
	return kinds
}

// shortCampaign is the length of the load in `make test-all`.
const shortCampaign = 100 * time.Second
