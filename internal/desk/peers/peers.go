// Package peers looks at the other programs of a Docket: at their /readyz and /metrics. It sends no secret, follows no
// redirect, and believes nothing beyond numbers and short texts.
package peers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/peers/target"
)

// Config says whom to look at.
type Config struct {
	Targets []target.Target
	// Within limits one look at everybody, 1.5 s.
	Within time.Duration
	// Lookup finds the addresses of a name on a network, ip4 or ip6. Default: the resolver of the system.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Now    func() time.Time
	Log    zerolog.Logger // the zero logger writes nothing
}

const (
	defaultWithin = 1500 * time.Millisecond
	// mostPeers limits the addresses of all names together.
	mostPeers = 128
	// atOnce limits the peers that are asked at the same time.
	atOnce = 8
)

// Peer is what a look found of one program.
type Peer struct {
	// Address is the target as it was written, or host:port of one address behind its name.
	Address string
	// Why says in words why the program, or one of its two pages, was not seen; empty: both were.
	Why string
	// Ready is nil where /readyz did not answer.
	Ready *Ready
	// Facts are nil where /metrics did not answer.
	Facts *Facts
}

// Seen reports whether anything is known of the program.
func (p *Peer) Seen() bool { return p.Ready != nil || p.Facts != nil }

// Program is its name: consumer, parking-replayer, collector, docket. Empty: not known.
func (p *Peer) Program() string {
	if p.Ready != nil && p.Ready.Program != "" {
		return p.Ready.Program
	}
	if p.Facts != nil {
		return p.Facts.Program
	}
	return ""
}

// Watch looks at the peers. It is safe for concurrent use.
type Watch struct {
	cfg    Config
	client *http.Client

	mu    sync.Mutex
	rates map[string]sample // of the last look, by address
}

// New makes a watch. It asks nobody.
func New(c Config) *Watch {
	if c.Within <= 0 {
		c.Within = defaultWithin
	}
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupNetIP
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Watch{cfg: c, rates: map[string]sample{}, client: &http.Client{
		// A proxy of the environment is for other purposes, and would see the addresses.
		Transport:     &http.Transport{Proxy: nil, MaxConnsPerHost: 2, MaxIdleConnsPerHost: 1, IdleConnTimeout: 10 * time.Second, ResponseHeaderTimeout: c.Within, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections.
func (w *Watch) Close() { w.client.CloseIdleConnections() }

// one is a program to ask.
type one struct{ address, base string }

// Look asks everybody, within the limit. It never fails: a peer that does not answer says why.
func (w *Watch) Look(ctx context.Context) []Peer {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Within)
	defer cancel()
	asked, all := w.addresses(ctx)
	found := make([]Peer, len(asked))
	free := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, who := range asked {
		wait.Go(func() {
			select {
			case free <- struct{}{}:
				defer func() { <-free }()
				p, err := safely(w, func() (Peer, error) { return w.ask(ctx, who), nil })
				if err != nil {
					p = Peer{Address: who.address, Why: reasonOf(err)}
				}
				found[i] = p
			case <-ctx.Done():
				found[i] = Peer{Address: who.address, Why: "there was no time to ask it"}
			}
		})
	}
	wait.Wait()
	w.forget(asked)
	return slices.Concat(found, all)
}

// addresses lists the programs behind all targets, and the names without an address.
func (w *Watch) addresses(ctx context.Context) (asked []one, none []Peer) {
	found := make([][]netip.Addr, len(w.cfg.Targets))
	errs := make([]error, len(w.cfg.Targets))
	var wait sync.WaitGroup
	for i, t := range w.cfg.Targets {
		if t.URL == nil {
			wait.Go(func() {
				found[i], errs[i] = safely(w, func() ([]netip.Addr, error) { return w.lookup(ctx, t.Host) })
			})
		}
	}
	wait.Wait()
	for i, t := range w.cfg.Targets {
		if t.URL != nil {
			asked = append(asked, one{t.Text, t.URL.String()})
			continue
		}
		if len(found[i]) == 0 && !slices.ContainsFunc(none, func(p Peer) bool { return p.Address == t.Text }) {
			none = append(none, Peer{Address: t.Text, Why: nameless(errs[i])})
		}
		slices.SortFunc(found[i], netip.Addr.Compare)
		for _, ip := range slices.Compact(found[i]) {
			at := net.JoinHostPort(ip.Unmap().String(), t.Port)
			asked = append(asked, one{at, "http://" + at})
		}
	}
	asked = once(asked)
	if len(asked) > mostPeers {
		none = append(none, Peer{Address: "others", Why: "more than 128 addresses are not looked at"})
		asked = asked[:mostPeers]
	}
	return asked, none
}

// lookup asks for IPv6 only where there is no IPv4: a program that has both would be two.
func (w *Watch) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := w.cfg.Lookup(ctx, "ip4", host)
	if len(found) > 0 {
		return found, nil
	}
	others, otherErr := w.cfg.Lookup(ctx, "ip6", host)
	if len(others) > 0 {
		return others, nil
	}
	var none *net.DNSError
	if otherErr != nil && (err == nil || errors.As(err, &none) && none.IsNotFound) {
		err = otherErr
	}
	return nil, err
}

// once drops programs that were named before. Their numbers would count twice.
func once(all []one) (kept []one) {
	seen := map[string]bool{}
	for _, o := range all {
		if !seen[o.base] {
			seen[o.base] = true
			kept = append(kept, o)
		}
	}
	return kept
}

// nameless says why a name has no address.
func nameless(err error) string {
	var wrong *net.DNSError
	switch {
	case errors.Is(err, errPanicked):
		return errPanicked.Error()
	case errors.As(err, &wrong) && wrong.IsNotFound, err == nil:
		return "the name has no address"
	case errors.Is(err, context.DeadlineExceeded):
		return "the DNS did not answer in time"
	}
	return "the DNS did not answer"
}

// reasonOf says in words why a request failed. The words hold nothing of the answer.
func reasonOf(err error) string {
	var timeout interface{ Timeout() bool }
	var status statusError
	switch {
	case errors.Is(err, errForeign):
		return errForeign.Error()
	case errors.Is(err, errPanicked):
		return errPanicked.Error()
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, errLarge):
		return errLarge.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	}
	return "it does not answer"
}
