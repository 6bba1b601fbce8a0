package limit

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPlan_Defaults(t *testing.T) {
	t.Parallel()
	for all, want := range map[int]Plan{
		2: {All: 2, Low: 1, Burst: 1}, 3: {All: 3, Low: 2, Burst: 1}, 450: {All: 450, Low: 405, Burst: 45}, 1000: {All: 1000, Low: 900, Burst: 100},
	} {
		if got := NewPlan(all, 0, 0, nil); got.Low != want.Low || got.Burst != want.Burst {
			t.Errorf("limit %d: %+v, want %+v", all, got, want)
		}
	}
	if got := NewPlan(450, 350, 7, nil); got.Low != 350 || got.Burst != 7 {
		t.Errorf("what is set: %+v", got)
	}
}

// The parts of consumers, replayers and a restore add up to the limits and never to more, however partitions are spread.
func TestPlan_PartsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.IntRange(Least, 100_000).Draw(t, "all")
		p := NewPlan(all, rapid.IntRange(0, all-1).Draw(t, "low"), rapid.IntRange(0, all).Draw(t, "burst"), Calendar{{19, 23, max(1, all/3)}})
		now := epoch.Add(time.Duration(rapid.IntRange(0, 23).Draw(t, "hour")) * time.Hour)
		var sum, alone Rates
		processes := 0
		add := func(to *Rates, r Rates) {
			to.All, to.Low, to.Burst = to.All+r.All, to.Low+r.Low, to.Burst+r.Burst
			processes++
			if r.Low > r.All || r.Burst < 1 {
				t.Fatalf("rates of a process: %+v", r)
			}
		}
		consumers := spread(t, "partitions")
		for _, s := range consumers {
			add(&sum, p.Consumer(now, s))
			alone.All += p.CutOff(now, s).All
		}
		for _, s := range spread(t, "parked") {
			add(&sum, p.Tenth(now, s))
		}
		add(&sum, p.Tenth(now, Share{1, 1}))
		low := float64(p.LowAt(now))
		if math.Abs(sum.All-float64(all)) > 1e-6*float64(all) || math.Abs(sum.Low-low) > 1e-6*low || sum.Burst > p.Burst+processes {
			t.Fatalf("parts add up to %+v, want %d, %v, %d", sum, all, low, p.Burst)
		}
		if alone.All > float64(all)-low+1e-6*float64(all) {
			t.Fatalf("processes that are cut off use %v beyond the limit, want at most %v", alone.All, float64(all)-low)
		}
		if half := p.Consumer(now, Share{1, 2}); half.All > sum.All/2 {
			t.Fatalf("half of the partitions has %+v", half)
		}
	})
}

// spread returns the shares of processes that have all partitions together.
func spread(t *rapid.T, name string) (all []Share) {
	mine := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 12).Draw(t, name)
	sum := 1
	mine[0]++
	for _, n := range mine {
		sum += n
	}
	sum--
	for _, n := range mine {
		all = append(all, Share{n, sum})
	}
	return all
}

// In no second does a process that is cut off grant more than its share of limit minus low limit, the burst included.
func TestPlan_CutOffHasItsBurstInside(t *testing.T) {
	t.Parallel()
	p := NewPlan(450, 350, 0, nil)
	for _, s := range []Share{{1, 1}, {1, 2}, {1, 12}} {
		pair, atMost := NewPair(epoch, p.CutOff(epoch, s)), 100*s.Mine/s.All
		var grants []grant
		for now := epoch.Add(time.Minute); now.Before(epoch.Add(2 * time.Minute)); now = now.Add(time.Millisecond) {
			if n, _ := pair.Take(now, false, 50, 1); n > 0 {
				grants = append(grants, grant{at: now, n: n})
			}
		}
		if n := most(grants, time.Second, false); n > atMost+1 || n < atMost/2 {
			t.Errorf("share %v: %d rows in a second, want %d at most", s, n, atMost)
		}
	}
}

func TestPlan_UnknownShareIsNothing(t *testing.T) {
	t.Parallel()
	p := NewPlan(450, 350, 0, nil)
	for _, s := range []Share{{}, {3, 0}, {0, 3}, {-1, 3}} {
		if r := p.Consumer(epoch, s); r.All != 0 || r.Low != 0 || r.Burst != 1 {
			t.Errorf("share %v has %+v", s, r)
		}
	}
	if r := p.Consumer(epoch, Share{5, 3}); r.All > 450 {
		t.Errorf("more partitions than there are: %+v", r)
	}
}

func TestCalendar_HoursOfTheDay(t *testing.T) {
	t.Parallel()
	c, wrong := ParseCalendar(" 19-23=low:150, 23-4=low:100 ,12-13=low:1")
	if wrong != nil || len(c) != 3 {
		t.Fatalf("%v, %v", c, wrong)
	}
	p := NewPlan(450, 350, 0, c)
	day := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	for hour := range 24 {
		want := 350
		switch {
		case hour >= 19 && hour < 23:
			want = 150
		case hour >= 23 || hour < 4:
			want = 100
		case hour == 12:
			want = 1
		}
		for _, at := range []time.Time{day.Add(time.Duration(hour) * time.Hour), day.Add(time.Duration(hour+1)*time.Hour - 1)} {
			if got := p.LowAt(at.In(time.FixedZone("far", 9*3600))); got != want {
				t.Errorf("%v: %d, want %d", at, got, want)
			}
		}
	}
}

func TestCalendar_EachComplaintAtOnce(t *testing.T) {
	t.Parallel()
	c, wrong := ParseCalendar("19-23=low:150,x,24-3=low:5,1-25=low:5,4-4=low:5,5-6=low:0,22-1=low:7,7-8=low:9999999999,1-2=high:5,")
	if len(c) != 2 || len(wrong) != 8 {
		t.Fatalf("%v, %d complaints: %v", c, len(wrong), wrong)
	}
	for i, word := range []string{"is not HOUR", "hours are", "hours are", "whole day", "nothing", "19-23 has, too", "is not HOUR", "is not HOUR"} {
		if !strings.Contains(wrong[i].Error(), word) {
			t.Errorf("complaint %d: %v, want %q", i, wrong[i], word)
		}
	}
	if c, wrong := ParseCalendar("  "); c != nil || wrong != nil {
		t.Errorf("nothing: %v %v", c, wrong)
	}
}
