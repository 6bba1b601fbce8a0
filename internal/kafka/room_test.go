package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recorded encodes a record with so many headers.
func recorded(offset, headers int, value []byte) []byte {
	body := binary.AppendVarint([]byte{0, 2}, int64(offset))
	body = binary.AppendVarint(body, -1)
	body = append(binary.AppendVarint(body, int64(len(value))), value...)
	body = append(binary.AppendVarint(body, int64(headers)), make([]byte, 2*headers)...)
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

func TestWeigh_CountsRecordsAndHeaders(t *testing.T) {
	t.Parallel()
	three := bytes.Join([][]byte{recorded(0, 0, nil), recorded(1, 5, []byte("value")), recorded(2, 300, nil)}, nil)
	message := append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 14}, make([]byte, 14)...)
	for name, tc := range map[string]struct {
		set              []byte
		records, headers int64
	}{
		"nothing":                     {nil, 0, 0},
		"records":                     {three, 3, 305},
		"a record is cut":             {three[:len(three)-1], 2, 5},
		"old messages":                {bytes.Repeat(message, 4), 4, 0},
		"a negative count of headers": {append(binary.AppendVarint(nil, 6), 0, 0, 0, 1, 1, 1), 1, 0},
	} {
		if got, want := weigh(tc.set), int64(len(tc.set))+tc.records*recordSize+tc.headers*headerSize; got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 { // whatever it is, it is weighed
		broken := bytes.Clone(three)
		for range 1 + random.IntN(4) {
			broken[random.IntN(len(broken))] = byte(random.Uint32())
		}
		if got := weigh(broken[:random.IntN(len(broken)+1)]); got < 0 {
			t.Fatalf("%d bytes for %x", got, broken)
		}
	}
}

func TestRoom_AdmitsWhatFits(t *testing.T) {
	t.Parallel()
	r := &room{most: 100}
	if !r.admit(150) {
		t.Error("a set that is larger than the buffer finds no room in an empty one")
	}
	if r.admit(1) || !r.full() {
		t.Error("another finds room beside it")
	}
	r.polled()
	if r.queued.Store(60); !r.admit(30) || r.admit(30) {
		t.Error("a second set has to fit beside the first and the queues")
	}
	r.polled()
	if r.queued.Store(100); r.admit(1) || !r.full() {
		t.Error("full queues leave room")
	}
	if unbounded := new(room); !unbounded.admit(1<<40) || !unbounded.admit(1<<40) || unbounded.full() {
		t.Error("without a limit a set is refused")
	}
}

// TestCrowded_LargeRecordsWaitDuringHolds has a record that is larger than a share wait while a hold lasts and batches in hand fill
// the buffer.
func TestCrowded_LargeRecordsWaitDuringHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{source: &Source{sc: SourceConfig{BufferBytes: 100 << 10}.withDefaults(Config{})}}
		s.sharing.Store(10)
		s.holding.Store(1)
		s.inHand.Store(60 << 10)
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		took := make(chan int, 1)
		take := func() {
			records, err := a.Take(t.Context(), 10, s.most(), 0)
			if err != nil {
				t.Error(err)
			}
			took <- len(records)
		}
		if err := a.append([]*kgo.Record{{Topic: "logs", Offset: 0, Value: make([]byte, 5<<10)}, {Topic: "logs", Offset: 1, Value: make([]byte, 50<<10)}}); err != nil {
			t.Fatal(err)
		}
		take()
		if n := <-took; n != 1 {
			t.Fatalf("%d records, want the one that is no larger than a share", n)
		}
		go take()
		time.Sleep(time.Hour)
		select {
		case n := <-took:
			t.Fatalf("%d records were taken beyond the buffer", n)
		default:
		}
		s.holding.Store(0)
		if n := <-took; n != 1 {
			t.Fatalf("%d records after the hold", n)
		}
	})
}

func TestDetached_IsTheSameRecord(t *testing.T) {
	t.Parallel()
	type ours struct{}
	from := kgo.Record{Topic: "logs", Partition: 3, Offset: 7, Key: []byte("k"), Value: []byte("v"), LeaderEpoch: 2,
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("b")}, {Key: "null"}}, Context: context.WithValue(t.Context(), ours{}, 1)}
	r := detached(&from)
	if string(r.Key) != "k" || string(r.Value) != "v" || r.Headers[0].Key != "a" || string(r.Headers[0].Value) != "b" || r.Headers[1].Value != nil ||
		r.Offset != 7 || r.LeaderEpoch != 2 || r.Context.Value(ours{}) != 1 {
		t.Errorf("%+v", r)
	}
	if r := detached(&kgo.Record{}); r.Key != nil || r.Value != nil {
		t.Error("null is not kept")
	}
	r.Recycle() // it is nobody's but ours: nothing happens
	if r.Offset != 7 {
		t.Error("the client took back a record that is a copy")
	}
}

// TestDropped_WhatComesBehindIsNotQueued has a poll that began before the hold bring what comes behind the dropped records.
func TestDropped_WhatComesBehindIsNotQueued(t *testing.T) {
	t.Parallel()
	s := &session{source: &Source{sc: SourceConfig{}.withDefaults(Config{})}}
	a := newAssignment(t.Context(), s, "logs", 0, "member")
	log := make([]*kgo.Record, 6)
	for i := range log {
		log[i] = &kgo.Record{Topic: "logs", Offset: int64(i), LeaderEpoch: 3}
	}
	queued := func(want int, bytes int64) {
		t.Helper()
		if n, b := Queued(a); n != want || b != bytes || s.source.room.queued.Load() != bytes {
			t.Errorf("%d records of %d bytes are queued, %d for all, want %d of %d", n, b, s.source.room.queued.Load(), want, bytes)
		}
	}
	if err := a.append(log[:4]); err != nil {
		t.Fatal(err)
	}
	if taken, err := a.pop(1); err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	a.account.Enter(log[0])
	queued(3, 3*recordOverhead)
	a.drop()
	queued(0, 0)
	if err := a.append(log[4:]); err != nil {
		t.Fatal(err)
	}
	queued(0, 0)
	if at := a.rewind.at; at != (kgo.EpochOffset{Epoch: 3, Offset: 1}) || !a.paused() || !a.setBackIsDue() {
		t.Errorf("read again from %v, paused %v, due %v", at, a.paused(), a.setBackIsDue())
	}
	a.rewind = nil // as setBack leaves it
	if err := a.append(log[1:]); err != nil {
		t.Fatal(err)
	}
	queued(5, 5*recordOverhead)
	a.account.Enter(log[1:]...) // the books know them again
}

// TestStarved_DoesNotWaitForMore has a batch begin while no set finds room: nothing more would come.
func TestStarved_DoesNotWaitForMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{source: &Source{sc: SourceConfig{}.withDefaults(Config{})}}
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		if err := a.append([]*kgo.Record{{Topic: "logs"}}); err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		go func() {
			time.Sleep(time.Second)
			a.starve(true)
		}()
		if records, err := a.Take(t.Context(), 10, 1<<20, time.Hour); err != nil || len(records) != 1 || time.Since(from) != time.Second {
			t.Errorf("%d records after %v, %v", len(records), time.Since(from), err)
		}
	})
}
