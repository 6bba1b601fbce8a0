package api

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// failuresAtOnce is how many failed logins of one address are answered without a pause.
	failuresAtOnce = 10
	// failuresASecond is how many more there may be each second.
	failuresASecond = 1
	// maxAddresses is how many addresses are remembered: a few hundred bytes each.
	maxAddresses = 4096
)

// throttle slows down whoever guesses at tokens: an address with too many failed logins waits. Who has logged in from that
// address before does not wait, so that a forgotten script beside an operator does not lock the operator out.
type throttle struct {
	mu        sync.Mutex
	addresses map[string]*list.Element
	recent    *list.List // of *address, the latest first
	most      int
}

type address struct {
	name     string
	failures *rate.Limiter
	known    map[string]struct{} // names; there are no more than names in the settings
}

func newThrottle(most int) *throttle {
	return &throttle{addresses: map[string]*list.Element{}, recent: list.New(), most: most}
}

// admit counts one login and says whether it is to be answered, and if not, when to come again.
func (t *throttle) admit(remote, name string, failed bool, now time.Time) (bool, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.get(addressOf(remote))
	if failed {
		if a.failures.AllowN(now, 1) {
			return true, 0
		}
		return false, time.Second / failuresASecond
	}
	if _, known := a.known[name]; !known && a.failures.TokensAt(now) < 1 {
		return false, time.Second / failuresASecond
	}
	a.known[name] = struct{}{}
	return true, 0
}

// get finds an address and makes it the latest. One that is not there is made.
func (t *throttle) get(name string) *address {
	if e, found := t.addresses[name]; found {
		t.recent.MoveToFront(e)
		return e.Value.(*address)
	}
	if t.recent.Len() >= t.most {
		last := t.recent.Back()
		delete(t.addresses, last.Value.(*address).name)
		t.recent.Remove(last)
	}
	a := &address{name: name, failures: rate.NewLimiter(failuresASecond, failuresAtOnce), known: map[string]struct{}{}}
	t.addresses[name] = t.recent.PushFront(a)
	return a
}

// addressOf is the address without its port, and of IPv6 the network: one machine has all of it.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
