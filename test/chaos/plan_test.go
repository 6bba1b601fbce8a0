package chaos

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestPlan_SameSeedSamePlan(t *testing.T) {
	t.Parallel()
	one, two := Plan(7, time.Hour, Kinds(true, true)), Plan(7, time.Hour, Kinds(true, true))
	if !reflect.DeepEqual(one, two) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(one, Plan(8, time.Hour, Kinds(true, true))) {
		t.Error("two seeds give one plan")
	}
}

func TestPlan_ThreeDifferentPartsAtMost(t *testing.T) {
	t.Parallel()
	kinds := byName(t)
	for seed := range uint64(20) {
		plan := Plan(seed, 30*time.Minute, Kinds(true, true))
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
	for _, k := range Kinds(true, false) {
		groups[k.Group] = true
	}
	for _, f := range Plan(1, shortCampaign, Kinds(true, false)) {
		planned[kinds[f.Kind].Group] = true
	}
	for group := range groups {
		if !planned[group] {
			t.Errorf("the short plan has nothing of %q", group)
		}
	}
	for _, f := range Plan(1, 20*time.Minute, Kinds(true, true)) {
		long[f.Kind] = true
	}
	for name := range kinds {
		if !long[name] {
			t.Errorf("20 minutes have nothing of %q", name)
		}
	}
}

func byName(t *testing.T) map[string]Kind {
	t.Helper()
	kinds := map[string]Kind{}
	for _, k := range Kinds(true, true) {
		if _, twice := kinds[k.Name]; twice {
			t.Fatalf("two kinds are called %q", k.Name)
		}
		kinds[k.Name] = k
	}
	return kinds
}

// shortCampaign is the length of the load in `make test-all`.
const shortCampaign = 100 * time.Second
