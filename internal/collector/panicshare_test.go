package collector

import (
	"testing"

	"docket/internal/collector/routing"
	"docket/internal/consumer/lanes"
)

// The sender of an upload that met a bug sends it again, and pays for it then.
func TestPanic_SpendsNothing(t *testing.T) {
	t.Parallel()
	shares, wrong := routing.ParseShares("client=1/s")
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	w := newWorld(t, func(c *Config) {
		c.Routing = routing.Config{Shares: shares, Bulk: true}
		c.Lanes = map[lanes.Lane]string{lanes.Bulk: "decision-logs-bulk"}
	})
	body := "[" + good("1") + "," + good("2") + "," + good("3") + "," + good("4") + "]"
	w.kafka.before = func(int) { panic("a bug") }
	for range 5 { // a share of ten at once is spent by three uploads
		if a := w.post(t, body); a.Code != 500 {
			t.Fatalf("%d", a.Code)
		}
	}
	w.kafka.before = nil
	if a := w.post(t, body); a.Code != 200 || len(w.kafka.in(logs)) != 4 {
		t.Errorf("%d: %d in the default lane, want 4", a.Code, len(w.kafka.in(logs)))
	}
}

// sends follows how many sends of an upload are open, and with which error the last one ended.
type sends struct {
	untraced
	open int
	err  error
}

func (s *sends) Upload(string) Trace { return s }

func (s *sends) Publishing(int) (done func(error)) {
	s.open++
	return func(err error) { s.open, s.err = s.open-1, err }
}

func TestPanic_EndsTheSpanOfTheSend(t *testing.T) {
	t.Parallel()
	s := &sends{}
	w := newWorld(t, func(c *Config) { c.Tracer = s })
	w.kafka.before = func(int) { panic("a bug") }
	if a := w.post(t, good("1")); a.Code != 500 || s.open != 0 || s.err == nil {
		t.Errorf("%d, %d sends are open, the last ended with %v", a.Code, s.open, s.err)
	}
	w.kafka.before = nil
	if a := w.post(t, good("1")); a.Code != 200 || s.open != 0 || s.err != nil {
		t.Errorf("the next: %d, %d sends are open, the last ended with %v", a.Code, s.open, s.err)
	}
}
