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
