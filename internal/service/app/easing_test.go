package app

import "testing"

func TestEasing_CollectionsThatFindLittle(t *testing.T) {
	t.Parallel()
	const base = 144 << 20
	e := &easing{limit: base, most: base + 20<<20, step: 8 << 20, little: 18 << 20, near: 126 << 20}
	cycles, allocated, used := uint64(0), uint64(0), uint64(130<<20)
	look := func(n, each uint64) bool {
		cycles, allocated = cycles+n, allocated+n*each
		return e.judge(cycles, allocated, used)
	}
	if look(100, 25<<20) {
		t.Error("it rose although each collection found much")
	}
	if look(3, 1<<20) {
		t.Error("three collections are too few to judge")
	}
	used = 100 << 20
	if look(100, 1<<20) {
		t.Error("it rose although the limit is far away")
	}
	used = 130 << 20
	for _, want := range []int64{base + 8<<20, base + 16<<20, base + 20<<20} {
		if !look(4, 4<<20) || e.limit != want {
			t.Errorf("the limit is %d, want %d", e.limit, want)
		}
	}
	if look(100, 1<<20) || e.limit != e.most {
		t.Errorf("it rose beyond its most, to %d", e.limit)
	}
}

func TestEasing_KnowsTheRuntime(t *testing.T) {
	t.Parallel()
	if _, allocated, used := collections(); allocated == 0 || used == 0 {
		t.Error("the runtime tells of no memory")
	}
	if e := newEasing(144 << 20); e.most != 168<<20 || e.step != 8<<20 || e.little != 18<<20 || e.near != 126<<20 {
		t.Errorf("%+v", *e)
	}
}
