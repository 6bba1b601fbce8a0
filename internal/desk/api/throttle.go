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
	// failuresAtOnce is the number of failed logins of one address that are answered without a pause.
	failuresAtOnce = 10
	// failuresASecond is the number of further ones each second.
	failuresASecond = 1
	// maxAddresses limits the remembered addresses; each takes a few hundred bytes.
	maxAddresses = 4096
)

// throttle slows down guessing of tokens: an address with too many failed logins has to wait. A caller who has logged
// in from that address before need not wait. So a forgotten script does not lock an operator out.
type throttle struct {
	mu        sync.Mutex
	addresses map[string]*list.Element
	recent    *list.List // of *address, the latest first
	most      int
}

type address struct {
	name     string
	failures *rate.Limiter
	known    map[string]struct{} // names; no more than in the settings
}

func newThrottle(most int) *throttle {
	return &throttle{addresses: map[string]*list.Element{}, recent: list.New(), most: most}
}

// admit counts one login. It reports whether to answer it, and if not, the time to wait.
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

// get returns an address as the latest, a new one if it is not there.
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

// addressOf returns the address without its port, and the network of an IPv6 address, because one machine has all of
// it.
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
