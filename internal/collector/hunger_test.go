package collector

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// crowd is uploads that wait for Kafka, until each is let go.
type crowd struct {
	*world
	entered, let chan struct{}
	answers      chan int
}

func newCrowd(t *testing.T, memory int64) *crowd {
	t.Helper()
	w := &crowd{newWorld(t, func(c *Config) { c.Memory, c.Uploads = memory, 1000 }), make(chan struct{}), make(chan struct{}), make(chan int)}
	w.kafka.before = func(int) {
		w.entered <- struct{}{}
		<-w.let
	}
	return w
}

// upload reports whether an upload of a client got its memory. If not, it was put off.
func (w *crowd) upload(t *testing.T, client string, kib int) bool {
	t.Helper()
	r := posted(t.Context(), "/logs", strings.NewReader(strings.Repeat(" ", kib<<10)+good("a")))
	r.RemoteAddr = client + ":1"
	a := httptest.NewRecorder()
	go func() {
		w.ServeHTTP(a, r)
		w.answers <- a.Code
	}()
	select {
	case <-w.entered:
		return true
	case code := <-w.answers:
		if code != 429 || problem(t, a).Reason != reasonMemory {
			t.Fatalf("%s: %d %s", client, code, a.Body)
		}
		return false
	}
}

// end lets one upload end.
func (w *crowd) end(t *testing.T) {
	t.Helper()
	w.let <- struct{}{}
	if code := <-w.answers; code != 200 {
		t.Fatalf("an upload that had its memory: %d", code)
	}
}

// A client whose uploads take all memory gets no more of it before another one that waits.
func TestMemory_OneClientLeavesSomeToOthers(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, 4<<20)
	now := time.Unix(1e9, 0)
	w.now = func() time.Time { return now }
	greedy := 0
	for w.upload(t, "10.0.0.1", 200) {
		greedy++
	}
	if taken := w.memory.used.Load(); taken < 3<<20 || greedy < 6 {
		t.Fatalf("%d uploads hold %d bytes: alone, it does not get all", greedy, taken)
	}
	if w.upload(t, "10.0.0.2", 200) {
		t.Fatal("there is none left")
	}
	for range 2 {
		w.end(t)
		greedy--
	}
	if w.upload(t, "10.0.0.1", 200) {
		t.Error("it gets more before who waits")
		greedy++
	}
	if !w.upload(t, "10.0.0.2", 200) {
		t.Fatal("who waited gets none")
	}
	for range greedy + 1 {
		w.end(t)
	}
	if !w.upload(t, "10.0.0.1", 200) {
		t.Fatal("below a quarter it waits for others")
	}
	held := w.memory.used.Load()
	for w.upload(t, "10.0.0.1", 200) {
		held = w.memory.used.Load()
	}
	if held > 1<<20 {
		t.Errorf("it has %d bytes, a quarter is 1 MiB", held)
	}
	now = now.Add(waits + 1)
	more := 0
	for w.upload(t, "10.0.0.1", 200) {
		more++
	}
	if more == 0 {
		t.Error("who does not come again is waited for for ever")
	}
	for w.places.taken() > 0 {
		w.end(t)
	}
	if left := w.memory.used.Load(); left != 0 || len(w.places.held) != 0 {
		t.Errorf("%d bytes and %d clients are left", left, len(w.places.held))
	}
}

// One upload alone may have more than a quarter of the memory, whoever waits.
func TestMemory_OneUploadMayHaveAll(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, 1<<20)
	w.places.hunger("10.0.0.2", w.now())
	if !w.upload(t, "10.0.0.1", 400) {
		t.Fatal("it is put off for ever")
	}
	if w.upload(t, "10.0.0.1", 1) {
		t.Error("a further one of that client got some")
		w.end(t)
	}
	w.end(t)
}
