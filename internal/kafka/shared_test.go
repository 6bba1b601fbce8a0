package kafka

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// shared makes the rooms of sources that share memory: own bytes each, and sets of this many bytes.
func shared(set int, own ...int64) (all []*room) {
	m := NewMemory()
	for _, bytes := range own {
		all = append(all, newRoom(SourceConfig{BufferBytes: bytes, MaxDecompressBytes: set, Memory: m}))
	}
	return all
}

func TestMemory_OwnPartIsAlwaysThere(t *testing.T) {
	t.Parallel()
	r := shared(30, 24, 8, 8) // 40 in common
	low, urgent, bulk := r[0], r[1], r[2]
	low.made.Store(24 + 40)
	bulk.made.Store(8)
	if !urgent.may(8) {
		t.Error("the urgent source may not use its own part")
	}
	if urgent.may(9) || low.may(1) || bulk.may(1) {
		t.Error("more than all is used")
	}
}

func TestMemory_CommonPartHasTheLargestSet(t *testing.T) {
	t.Parallel()
	r := shared(100, 24, 8)
	if !r[1].may(100) || r[1].may(109) {
		t.Error("the common part is not that of the largest set")
	}
}

// TestMemory_AloneIsAsWithout compares a source that shares with nobody and one without shared memory.
func TestMemory_AloneIsAsWithout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		own, set := rapid.Int64Range(1, 100).Draw(t, "own"), rapid.IntRange(1, 200).Draw(t, "set")
		one, other := shared(set, own)[0], newRoom(SourceConfig{BufferBytes: own, MaxDecompressBytes: set})
		if one.most.Load() != other.most.Load() {
			t.Fatalf("%d bytes, alone %d", one.most.Load(), other.most.Load())
		}
		for range 50 {
			used, more := rapid.Int64Range(0, 400).Draw(t, "used"), rapid.Int64Range(0, 200).Draw(t, "more")
			one.made.Store(used)
			other.made.Store(used)
			if a, b := one.may(more), other.may(more); a != b {
				t.Fatalf("%d more than %d: %t, alone %t", more, used, a, b)
			}
			if a, b := one.ease(), other.ease(); a != b {
				t.Fatalf("eased at %d: %t, alone %t", used, a, b)
			}
		}
	})
}

// TestMemory_SumIsBounded lets three sources open and finish sets of any size, in any order. All together use
// at most what one would use alone. Each source that wants a set gets it once the others finish theirs.
func TestMemory_SumIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rooms := shared(32, 24, 8, 8)
		open := make([][]int64, len(rooms))
		which, size := rapid.IntRange(0, 2), rapid.Int64Range(1, 32)
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				i, bytes := which.Draw(t, "source"), size.Draw(t, "bytes")
				if r := rooms[i]; r.may(bytes) {
					r.made.Add(bytes)
					r.memory.opened(r)
					open[i] = append(open[i], bytes)
				}
			},
			"finish": func(t *rapid.T) {
				if i := which.Draw(t, "source"); len(open[i]) > 0 {
					rooms[i].made.Add(-open[i][0])
					open[i] = open[i][1:]
				}
			},
			"look": func(t *rapid.T) { rooms[which.Draw(t, "source")].ease() },
			"": func(t *rapid.T) {
				sum := int64(0)
				for _, r := range rooms {
					sum += r.used()
				}
				if sum > 80 {
					t.Fatalf("%d bytes are used, alone 80 would be", sum)
				}
			},
		})
		for i := range rooms { // everything finishes
			rooms[i].made.Store(0)
		}
		for range 10 {
			for _, r := range rooms {
				if !r.until.IsZero() {
					r.until = time.Now().Add(-kept) // nobody opened the set
				}
				r.ease()
			}
		}
		for i, r := range rooms {
			if r.full.Load() {
				t.Fatalf("source %d is full for ever", i)
			}
		}
	})
}

// TestMemory_RefusedComesFirst has one source borrow all, and another want a large set.
func TestMemory_RefusedComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := shared(32, 24, 8)
		low, urgent := r[0], r[1]
		low.made.Store(24 + 20)
		if urgent.may(32) {
			t.Fatal("more than all is used")
		}
		if !low.full.Load() || low.ease() || !low.memory.pressed(low) || urgent.memory.pressed(urgent) {
			t.Error("the other does not give back what it borrowed")
		}
		low.made.Store(24 + 9)
		if urgent.ease() {
			t.Error("eased before there is room")
		}
		low.made.Store(24 + 8)
		if !urgent.ease() {
			t.Error("not eased although there is room")
		}
		if low.made.Store(24); !low.ease() || !low.memory.lends(low, 0) || low.memory.may(low, 1) {
			t.Error("the other borrows before the set is opened")
		}
		if !urgent.may(32) {
			t.Error("the set is refused again")
		}
		urgent.made.Store(32)
		urgent.memory.opened(urgent)
		if !low.may(8) || low.may(9) {
			t.Error("the other may borrow what is left, and no more")
		}
	})
}

// TestMemory_NotKeptForEver has a source that was refused a set and then lost its partition.
func TestMemory_NotKeptForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := shared(32, 24, 8)
		low, urgent := r[0], r[1]
		low.made.Store(24 + 20)
		urgent.may(32)
		low.made.Store(24)
		if !urgent.ease() || !low.ease() {
			t.Fatal("full for ever")
		}
		if low.memory.may(low, 10) {
			t.Error("not kept at all")
		}
		time.Sleep(kept + time.Millisecond)
		if !low.may(10) {
			t.Error("kept for nobody")
		}
	})
}

// TestMemory_FirstGoesBehindTheOthers has a source that was refused and whose own partitions keep what it waits for.
// Another one that waits gets its turn.
func TestMemory_FirstGoesBehindTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := shared(32, 24, 8, 8)
		low, urgent, bulk := r[0], r[1], r[2]
		low.made.Store(24)
		urgent.made.Store(8 + 30)
		if urgent.may(20) || bulk.may(20) {
			t.Fatal("more than all is used")
		}
		if bulk.memory.may(bulk, 10) {
			t.Error("the second comes first")
		}
		time.Sleep(longestFirst + time.Millisecond)
		if !bulk.memory.may(bulk, 8+9) {
			t.Error("the first stays first for ever")
		}
		time.Sleep(longestFirst / 2)
		if low.memory.may(low, 1) {
			t.Error("the second has no time of its own as the first")
		}
	})
}

// TestMemory_WaitsUntilItIsGiven has a source whose time as the first is over before the others gave anything back, as
// on a busy machine. They have all that they want, and would keep it for as long as their partitions hold.
func TestMemory_WaitsUntilItIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := shared(32, 24, 8, 8)
		low, urgent, bulk := r[0], r[1], r[2]
		low.made.Store(24 + 4)
		bulk.made.Store(8 + 21)
		if urgent.may(8 + 21) {
			t.Fatal("more than all is used")
		}
		for range 5 {
			if time.Sleep(longestFirst + time.Millisecond); urgent.ease() {
				t.Fatal("eased before there is room")
			}
			for _, other := range []*room{low, bulk} {
				if other.ease() || !other.memory.pressed(other) {
					t.Fatal("the other keeps what it borrowed")
				}
			}
		}
		if bulk.made.Store(8 + 15); !urgent.ease() || !urgent.may(8+21) {
			t.Error("the set is refused although there is room")
		}
	})
}

// TestMemory_JoinsWhileOthersRead adds a source while another one looks at its room without the memory's lock.
func TestMemory_JoinsWhileOthersRead(t *testing.T) {
	t.Parallel()
	first := shared(32, 8)[0]
	first.made.Store(1 << 20) // so full that it asks no other source
	var reading sync.WaitGroup
	started := make(chan struct{})
	reading.Go(func() {
		close(started)
		for range 1000 {
			if first.ease(); first.low() {
				t.Error("there is room")
				return
			}
		}
	})
	<-started
	for range 10 {
		newRoom(SourceConfig{BufferBytes: 8, MaxDecompressBytes: 32, Memory: first.memory})
	}
	reading.Wait()
	if most := first.most.Load(); most != 8+88 {
		t.Errorf("at most %d bytes after ten more sources", most)
	}
}
