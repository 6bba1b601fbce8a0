package failpoint

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// watched is a set that neither kills nor prints.
func watched(t *testing.T, spec string) (s *Set, log *[]string) {
	t.Helper()
	s, err := New(spec, Topics{DLQ: "dlq", Parking: "parking", ParkingDLQ: "given-up"}, false)
	if err != nil {
		t.Fatal(err)
	}
	log = &[]string{}
	s.signal = func(sig syscall.Signal) { *log = append(*log, sig.String()) }
	s.say = func(line string) { *log = append(*log, strings.TrimSpace(line)) }
	return s, log
}

func TestPoint_TripsAtItsVisitAndReportsFirst(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "polled@2=kill, parsed=stop")
	for range 3 {
		s.pass(Polled)
		s.pass(Parsed)
		s.pass(TxBegun)
	}
	want := []string{
		`{"failpoint":"parsed","n":1,"action":"stop"}`, syscall.SIGSTOP.String(),
		`{"failpoint":"polled","n":2,"action":"kill"}`, syscall.SIGKILL.String(),
	}
	if !slices.Equal(*log, want) {
		t.Errorf("got %q\nwant %q", *log, want)
	}
}

func TestError_StaysFromItsTimeOn(t *testing.T) {
	t.Parallel()
	s, _ := watched(t, "spool-tmp-synced@2+=error")
	for n := 1; n <= 4; n++ {
		err := s.reach(SpoolTmpSynced, syscall.EIO)
		if got := errors.Is(err, syscall.EIO); got != (n >= 2) {
			t.Errorf("time %d: %v", n, err)
		}
		if at := (*Error)(nil); err != nil && (!errors.As(err, &at) || at.Point != SpoolTmpSynced) {
			t.Errorf("the error does not name its point: %v", err)
		}
	}
}

func TestNew_RefusesWrongSpecification(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"polled", "nowhere=kill", "polled@0=kill", "polled@x=kill", "polled@=kill", "polled@1=die", "polled@1=sleep", "polled@1=sleep:1",
		"polled@1=kill:1s", "polled@1=error", "first-pause=error", "parsed@1=sleep:-1s", "polled@1=kill,nowhere=kill",
	} {
		var wrong *SpecError
		if _, err := New(spec, Topics{}, false); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", spec, err)
		}
	}
	if s, err := New(" , ", Topics{}, false); err != nil || len(s.wires) != 0 {
		t.Errorf("nothing is armed by nothing: %v", err)
	}
}

func TestTable_EveryPointOnceAndEveryKillPoint(t *testing.T) {
	t.Parallel()
	seen, numbers := map[Point]bool{}, map[int]bool{}
	for _, p := range Table() {
		if seen[p.Point] || p.Where == "" {
			t.Errorf("%s is there twice or nowhere", p.Point)
		}
		seen[p.Point], numbers[p.K] = true, true
	}
	for k := 1; k <= 29; k++ {
		if !numbers[k] {
			t.Errorf("K%d has no point", k)
		}
	}
}
