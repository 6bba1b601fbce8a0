package shards_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/consumer/shards"
)

func parsed(t testing.TB, text string) shards.Map {
	t.Helper()
	m, wrong := shards.Parse(strings.Split(text, ","))
	if len(wrong) > 0 {
		t.Fatal(text, wrong)
	}
	return m
}

func TestParse_Ranges(t *testing.T) {
	t.Parallel()
	m := parsed(t, "a=0-3,b=4-7,a=8,c-2=9-11")
	if got := fmt.Sprint(m.Names(), m[0].Ranges, m[1].Ranges, m[2].Ranges); got != "[a b c-2] 0-3+8 4-7 9-11" {
		t.Error(got)
	}
	for p, want := range map[int32]string{0: "a", 3: "a", 4: "b", 7: "b", 8: "a", 11: "c-2", 12: "", -1: ""} {
		if s, there := m.Owner(p); s.Name != want || there != (want != "") {
			t.Errorf("partition %d belongs to %q, want %q", p, s.Name, want)
		}
	}
}

// All complaints come at once: a person corrects the setting in one go.
func TestParse_Complaints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a=0-3,b=3-7":            {"a=0-3 and b=3-7 overlap"},
		"a=0-9,b=3-5,c=12-13":    {"a=0-9 and b=3-5 overlap", "no shard has the partitions 10-11"},
		"a=1-3,b=5":              {"no shard has the partitions 0;", "no shard has the partitions 4;"},
		"a=0-3,a=2-5":            {"a=0-3 and a=2-5 overlap"},
		"A=0,b=x,c=5-3,d=":       {`"A=0" has no valid name`, `"b=x" has no range`, `"c=5-3" has a range that ends before it begins`, `"d=" has no range`},
		"a=0-1,b=-2,c=1-,d=0-1x": {`"b=-2" has no range`, `"c=1-" has no range`, `"d=0-1x" has no range`},
		"a=0-1000000":            {"above 999999"},
		"a.b=0":                  {`"a.b=0" has no valid name`},
	} {
		_, wrong := shards.Parse(strings.Split(text, ","))
		if len(wrong) != len(want) {
			t.Errorf("%s: %v, want %d complaints", text, wrong, len(want))
			continue
		}
		for i := range want {
			if !strings.Contains(wrong[i].Error(), want[i]) {
				t.Errorf("%s: complaint %d is %q, want %q", text, i, wrong[i], want[i])
			}
		}
	}
}

// A setting that is read without a complaint gives each partition up to the highest one exactly one shard.
func TestParse_OneOwner(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			first := rapid.IntRange(0, 12).Draw(t, "first")
			return fmt.Sprintf("%s=%d-%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), first, first+rapid.IntRange(0, 4).Draw(t, "more"))
		}), 1, 5).Draw(t, "entries")
		m, wrong := shards.Parse(entries)
		highest, once := int32(-1), true
		owners := map[int32]int{}
		for _, s := range m {
			for _, r := range s.Ranges {
				for p := r.First; p <= r.Last; p++ {
					owners[p]++
					highest = max(highest, p)
				}
			}
		}
		for p := range highest {
			once = once && owners[p] == 1
		}
		once = once && owners[highest] == 1
		if once != (len(wrong) == 0) {
			t.Fatalf("%v: owners %v, complaints %v", entries, owners, wrong)
		}
		if once && len(m.Unowned(int(highest)+3)) != 2 {
			t.Fatalf("%v: unowned %v", entries, m.Unowned(int(highest)+3))
		}
	})
}

func TestShare_Part(t *testing.T) {
	t.Parallel()
	m := parsed(t, "a=0-3,b=4-7,a=8-9")
	share := m.Share("a")
	if got := share.Shard.Ranges.Below(9); !slices.Equal(got, []int32{0, 1, 2, 3, 8}) {
		t.Error(got)
	}
	if share.Count(9) != 5 || share.Count(2) != 2 || share.Has(4) || !share.Has(9) {
		t.Error("the share has other partitions than its ranges")
	}
	if got := share.Unowned(12); !slices.Equal(got, []int32{10, 11}) {
		t.Error(got)
	}
	var all *shards.Share
	if !all.Has(99) || all.Count(7) != 7 || all.Unowned(7) != nil || m.Share("") != nil || shards.Map(nil).Share("a") != nil {
		t.Error("without a shard everything is ours")
	}
	if m.Share("x").Has(0) {
		t.Error("a shard that is not named owns nothing")
	}
}
