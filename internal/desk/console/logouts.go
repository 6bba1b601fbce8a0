package console

import (
	"sync"
	"time"

	"docket/internal/desk/console/openid"
)

// remembered is how long a logout of the provider is remembered: longer than a login takes.
const remembered = openid.Lasts + 5*time.Minute

// mostLogouts limits those that are remembered. The oldest go first.
const mostLogouts = 10_000

// logouts are the last logouts that the provider sent. A logout may overtake the login that it ends: then no session is there
// yet. A desk remembers only those that came to itself.
type logouts struct {
	mu  sync.Mutex
	all []logout // the oldest first
}

type logout struct {
	of openid.Origin
	at time.Time // when it came
}

// add remembers a logout.
func (l *logouts) add(of openid.Origin, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.all) > 0 && (now.Sub(l.all[0].at) > remembered || len(l.all) >= mostLogouts) {
		l.all = l.all[1:]
	}
	l.all = append(l.all, logout{of, now})
}

// ended reports whether a login came too late for one of them. A logout of a person ends what the provider vouched for before.
func (l *logouts) ended(p openid.Person, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		switch of := one.of; {
		case now.Sub(one.at) > remembered:
		case of.Session != "" && of.Session == p.Session && (of.Subject == "" || of.Subject == p.Subject):
			return true
		case of.Session == "" && of.Subject == p.Subject && !p.IssuedAt.After(of.IssuedAt):
			return true
		}
	}
	return false
}
