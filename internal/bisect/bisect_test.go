package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"docket/internal/bisect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errData  = errors.New("this part is refused")
	errWorld = errors.New("the server is gone")
)

func judge(err error) bisect.Answer {
	if errors.Is(err, errData) {
		return bisect.Divide
	}
	return bisect.End
}

// asked is one call of ask.
type asked struct {
	part  []int
	again bool
	err   error
}

// table takes parts, all of them or nothing, and remembers every call.
type table struct {
	refuse  func(part []int) bool
	written []int
	log     []asked
	before  func(ask int) error // the error of the call with this number, from 1
}

func (tb *table) ask(_ context.Context, part []int, again bool) error {
	var err error
	if tb.before != nil {
		err = tb.before(len(tb.log) + 1)
	}
	if err == nil && tb.refuse(part) {
		err = fmt.Errorf("ask %d: %w", len(tb.log)+1, errData)
	}
	if err == nil {
		tb.written = append(tb.written, part...)
	}
	tb.log = append(tb.log, asked{slices.Clone(part), again, err})
	return err
}

func (tb *table) failedAlone(item int) (first, again int) {
	for _, a := range tb.log {
		switch {
		case len(a.part) != 1 || a.part[0] != item || !errors.Is(a.err, errData):
		case a.again:
			again++
		default:
			first++
		}
	}
	return first, again
}

func numbers(n int) []int {
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	return items
}

func among(bad ...int) func([]int) bool {
	return func(part []int) bool {
		return slices.ContainsFunc(part, func(item int) bool { return slices.Contains(bad, item) })
	}
}

func itemsOf(suspects []bisect.Suspect[int]) []int {
	var items []int
	for _, s := range suspects {
		items = append(items, s.Item)
	}
	return items
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func isolate(t *testing.T, tb *table, n int) bisect.Result[int] {
	t.Helper()
	return bisect.Isolate(t.Context(), numbers(n), errData, tb.ask, judge, nil)
}

func TestIsolate_OneBadItem(t *testing.T) {
	t.Parallel()
	tb := &table{refuse: among(5)}
	got := isolate(t, tb, 8)
	expect(t, "suspects", itemsOf(got.Suspects), []int{5})
	expect(t, "written", tb.written, []int{0, 1, 2, 3, 4, 6, 7})
	expect(t, "rest", []any{len(got.Homeless), got.Err}, []any{0, error(nil)})
	var parts [][]int
	for _, a := range tb.log {
		parts = append(parts, a.part)
	}
	// 4-7 must fail, and so must 5, as 4 passed. Still 5 is asked alone, twice.
	expect(t, "asks", parts, [][]int{{0, 1, 2, 3}, {4, 5}, {4}, {5}, {5}, {6, 7}})
	expect(t, "again", []bool{tb.log[3].again, tb.log[4].again}, []bool{false, true})
	expect(t, "counts", []int{got.Asked, got.Confirmed}, []int{5, 1})
	if got.Suspects[0].Err != tb.log[4].err {
		t.Errorf("error %v, want the second one", got.Suspects[0].Err)
	}
}

func TestIsolate_PassesTheSecondTime(t *testing.T) {
	t.Parallel()
	tb := &table{}
	tb.refuse = func(part []int) bool {
		first, _ := tb.failedAlone(2)
		return slices.Contains(part, 2) && first == 0
	}
	got := isolate(t, tb, 4)
	expect(t, "suspects", len(got.Suspects), 0)
	expect(t, "written", tb.written, []int{0, 1, 2, 3})
	expect(t, "confirmations", got.Confirmed, 1)
}

func TestIsolate_PairFailsOnlyTogether(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]int{{0, 1}, {0, 7}, {3, 4}, {6, 7}, {2, 5}} {
		tb := &table{refuse: func(part []int) bool { return slices.Contains(part, pair[0]) && slices.Contains(part, pair[1]) }}
		got := isolate(t, tb, 8)
		expect(t, "suspects", len(got.Suspects), 0)
		expect(t, "written", tb.written, numbers(8))
	}
}

func TestIsolate_EarlierOfTwoWins(t *testing.T) {
	t.Parallel()
	tb := &table{}
	tb.refuse = func(part []int) bool {
		has := func(item int) bool { return slices.Contains(part, item) || slices.Contains(tb.written, item) }
		return has(1) && has(6) && (slices.Contains(part, 1) || slices.Contains(part, 6))
	}
	got := isolate(t, tb, 8)
	expect(t, "suspects", itemsOf(got.Suspects), []int{6})
	expect(t, "written", tb.written, []int{0, 1, 2, 3, 4, 5, 7})
}

func TestIsolate_SetOfOne(t *testing.T) {
	t.Parallel()
	for _, bad := range []bool{true, false} {
		tb := &table{refuse: func([]int) bool { return bad }}
		got := isolate(t, tb, 1)
		expect(t, "asks", len(tb.log), 1)
		expect(t, "again", tb.log[0].again, true)
		expect(t, "counts", []int{got.Asked, got.Confirmed}, []int{0, 1})
		if bad {
			expect(t, "suspects", itemsOf(got.Suspects), []int{0})
		} else {
			expect(t, "suspects and written", []int{len(got.Suspects), len(tb.written)}, []int{0, 1})
		}
	}
}

func TestIsolate_FirstErrorIsNobodysFault(t *testing.T) {
	t.Parallel()
	tb := &table{refuse: among()}
	got := bisect.Isolate(t.Context(), numbers(4), errWorld, tb.ask, judge, nil)
	expect(t, "asks", len(tb.log), 0)
	expect(t, "result", got, bisect.Result[int]{Homeless: numbers(4), Err: errWorld})
}

func TestIsolate_NotAskedYet(t *testing.T) {
	t.Parallel()
	tb := &table{refuse: among()}
	got := bisect.Isolate(t.Context(), numbers(4), nil, tb.ask, judge, nil)
	expect(t, "asks", tb.log, []asked{{part: numbers(4)}})
	expect(t, "result", got, bisect.Result[int]{Asked: 1})

	tb = &table{refuse: among(0)}
	got = bisect.Isolate(t.Context(), numbers(1), nil, tb.ask, judge, nil)
	expect(t, "suspects", itemsOf(got.Suspects), []int{0})
	expect(t, "counts", []int{got.Asked, got.Confirmed}, []int{1, 1})
}

func TestIsolate_EmptySet(t *testing.T) {
	t.Parallel()
	tb := &table{refuse: among()}
	got := bisect.Isolate(t.Context(), nil, errData, tb.ask, judge, nil)
	expect(t, "result", got, bisect.Result[int]{Err: errData})
	expect(t, "asks", len(tb.log), 0)
}

func TestIsolate_EndClearsTheSuspects(t *testing.T) {
	t.Parallel()
	tb := &table{refuse: among(0, 2, 7)}
	tb.before = func(ask int) error {
		if ask == 8 { // 0 and 2 are found by then
			return fmt.Errorf("ask: %w", errWorld)
		}
		return nil
	}
	got := isolate(t, tb, 8)
	if !errors.Is(got.Err, errWorld) {
		t.Errorf("error %v", got.Err)
	}
	expect(t, "asks", len(tb.log), 8)
	expect(t, "suspects", len(got.Suspects), 0)
	expect(t, "written", tb.written, []int{1})
	expect(t, "homeless", got.Homeless, []int{0, 2, 3, 4, 5, 6, 7})
}

func TestIsolate_UnknownAnswerEnds(t *testing.T) {
	t.Parallel()
	for from := range 5 { // calls before it with the answer Divide
		judged := 0
		tb := &table{refuse: func([]int) bool { return true }}
		got := bisect.Isolate(t.Context(), numbers(8), errData, tb.ask, func(error) bisect.Answer {
			if judged++; judged > from {
				return 77
			}
			return bisect.Divide
		}, nil)
		expect(t, "asks", len(tb.log), from)
		expect(t, "homeless", got.Homeless, numbers(8))
		if got.Err == nil {
			t.Error("no error")
		}
	}
}

// The error of an interrupted ask must blame no item. An ask that still succeeded has written its part.
func TestIsolate_CancelledContextEnds(t *testing.T) {
	t.Parallel()
	refuse := among(0, 3, 7) // the last ask is a confirmation
	whole := &table{refuse: refuse}
	isolate(t, whole, 8)
	last := len(whole.log)
	for _, says := range []error{errData, errWorld, nil} {
		for at := 0; at <= last; at++ {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tb := &table{}
			cut := false
			tb.before = func(ask int) error {
				if ask != at {
					return nil
				}
				cancel()
				cut = true
				return says
			}
			tb.refuse = func(part []int) bool { return !cut && refuse(part) }
			if at == 0 {
				cancel()
			}
			got := bisect.Isolate(ctx, numbers(8), errData, tb.ask, judge, nil)
			conserved(t, tb, numbers(8), got)
			expect(t, "asks", len(tb.log), at)
			if at > 0 && says == nil && slices.Contains(tb.log[at-1].part, 7) { // done all the same
				expect(t, "error and suspects", []any{got.Err, itemsOf(got.Suspects)}, []any{error(nil), []int{0, 3}})
			} else {
				expect(t, "error", got.Err, context.Canceled)
			}
		}
	}
}

func TestIsolate_HomelessCannotGrowIntoTheSet(t *testing.T) {
	t.Parallel()
	items := append(make([]int, 0, 10), 1, 2)
	tb := &table{refuse: among(1), before: func(int) error { return errWorld }}
	got := bisect.Isolate(t.Context(), items, errData, tb.ask, judge, nil)
	_ = append(got.Homeless, 99)
	expect(t, "behind the set", items[:3][2], 0)
}
