package api

import (
	"fmt"
	"testing"
	"time"
)

func TestThrottle_IsBounded(t *testing.T) {
	t.Parallel()
	h := newThrottle(100)
	now := time.Unix(0, 0)
	for i := range 10_000 {
		h.admit(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "", true, now)
		if i%50 == 0 { // one that keeps coming is kept
			for range 20 {
				h.admit("192.0.2.1:1", "", true, now)
			}
		}
	}
	if len(h.addresses) != 100 || h.recent.Len() != 100 {
		t.Errorf("%d addresses in a list of %d", len(h.addresses), h.recent.Len())
	}
	if ok, _ := h.admit("192.0.2.1:9", "", true, now); ok {
		t.Error("whoever kept guessing was forgotten")
	}
	if ok, _ := h.admit("10.0.0.1:9", "", true, now); !ok {
		t.Error("the oldest was not forgotten")
	}
}
