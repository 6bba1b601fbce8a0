package pgtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Cut says where the connection is cut.
type Cut uint8

const (
	// CutNever cuts nothing.
	CutNever Cut = iota
	// CutBeforeInsert cuts when the COPY or insert arrives; the server does not get it.
	CutBeforeInsert
	// CutInCopy cuts after the first rows of a COPY; the server gets those.
	CutInCopy
	// CutAfterInsert cuts when the COPY or insert was answered, before the client gets the answer.
	CutAfterInsert
	// CutBeforeCommit cuts when COMMIT arrives. The server does not get it, so nothing is stored.
	CutBeforeCommit
	// CutAfterCommit cuts when COMMIT was answered, before the client gets the answer: everything is stored.
	CutAfterCommit
)

// Proxy is between a client and the server, without TLS. It cuts the connection at a chosen point of a transaction
// that inserts into decision_logs.
type Proxy struct {
	// URL leads through the proxy.
	URL string

	listener net.Listener

	mu     sync.Mutex
	target string
	cut    Cut
	cuts   int
	open   map[net.Conn]struct{}
	closed bool
	dials  int
	wait   sync.WaitGroup
}

// NewProxy starts a proxy in front of the server of db.
func (db *DB) NewProxy(t testing.TB) *Proxy {
	t.Helper()
	p, err := Listen(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Listen starts a proxy in front of the server of a database's URL. The caller closes it.
func Listen(database string) (*Proxy, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, errors.New("the database's URL is not valid") // the parser's error quotes it
	}
	p := &Proxy{target: address(u), open: map[net.Conn]struct{}{}}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	u.Host = p.listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	p.URL = u.String()
	p.wait.Go(p.accept)
	return p, nil
}

func address(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "5432")
	}
	return u.Host
}

// Lead switches the proxy to the server of another URL, and cuts every connection to the old one.
func (p *Proxy) Lead(database string) error {
	u, err := url.Parse(database)
	if err != nil {
		return errors.New("the database's URL is not valid") // the parser's error quotes it
	}
	p.mu.Lock()
	p.target = address(u)
	p.mu.Unlock()
	p.Drop()
	return nil
}

func (p *Proxy) leads() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Close cuts every connection and ends the proxy.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Drop()
	p.wait.Wait()
}

// Cut arms the proxy: the next transaction at this point is cut, once.
func (p *Proxy) Cut(at Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = at
}

// Cuts returns the number of cuts.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Dials returns the number of connections through the proxy.
func (p *Proxy) Dials() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

// Drop cuts every present connection.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	target := p.leads()
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	if p.closed || p.target != target {
		p.mu.Unlock()
		_, _ = client.Close(), server.Close()
		return
	}
	p.dials++
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	wire := &wire{proxy: p, client: client, server: server}
	p.wait.Go(func() { wire.down(); wire.close() })
	wire.up()
	wire.close()
}

// wire is one connection through the proxy.
type wire struct {
	proxy          *Proxy
	client, server net.Conn

	mu        sync.Mutex
	inserting bool   // the client sent an insert that is not committed yet
	copied    bool   // the first rows of a COPY were sent
	swallow   string // the answer at which to cut
}

func (w *wire) close() {
	_ = w.client.Close()
	_ = w.server.Close()
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	delete(w.proxy.open, w.client)
	delete(w.proxy.open, w.server)
}

// up passes on the client's messages.
func (w *wire) up() {
	startup := make([]byte, 4)
	if _, err := io.ReadFull(w.client, startup); err != nil {
		return
	}
	if _, err := w.server.Write(startup); err != nil {
		return
	}
	if _, err := io.CopyN(w.server, w.client, int64(binary.BigEndian.Uint32(startup))-4); err != nil {
		return
	}
	for {
		m, err := readMessage(w.client)
		if err != nil || w.cutsAt(m) {
			return
		}
		if _, err := w.server.Write(m); err != nil {
			return
		}
	}
}

// down passes on the server's messages.
func (w *wire) down() {
	for {
		m, err := readMessage(w.server)
		if err != nil {
			return
		}
		w.mu.Lock()
		cut := w.swallow != "" && m[0] == 'C' && bytes.HasPrefix(m[5:], []byte(w.swallow))
		w.mu.Unlock()
		if cut {
			return
		}
		if _, err := w.client.Write(m); err != nil {
			return
		}
	}
}

// cutsAt reports whether to cut the connection instead of sending m.
func (w *wire) cutsAt(m []byte) bool {
	sql := statement(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case strings.HasPrefix(sql, "INSERT INTO DECISION_LOGS"), strings.HasPrefix(sql, "COPY DECISION_LOGS"), strings.HasPrefix(sql, "DO "):
		w.inserting, w.copied = true, false
		if w.proxy.disarm(CutAfterInsert) {
			w.swallow, _, _ = strings.Cut(sql, " ")
		}
		return w.proxy.disarm(CutBeforeInsert)
	case m[0] == 'd' || m[0] == 'c':
		behind := w.copied
		w.copied = true
		return behind && w.proxy.disarm(CutInCopy)
	case w.inserting && strings.HasPrefix(sql, "COMMIT"):
		w.inserting = false
		if w.proxy.disarm(CutAfterCommit) {
			w.swallow = "COMMIT"
		}
		return w.proxy.disarm(CutBeforeCommit)
	}
	return false
}

func (p *Proxy) disarm(at Cut) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != at {
		return false
	}
	p.cut = CutNever
	p.cuts++
	return true
}

// statement returns the SQL of a Parse or Query message, in capitals and without leading blanks.
func statement(m []byte) string {
	body := m[5:]
	switch m[0] {
	case 'P':
		if _, after, ok := bytes.Cut(body, []byte{0}); ok {
			body = after
		}
	case 'Q':
	default:
		return ""
	}
	body = bytes.TrimSpace(body)
	return strings.ToUpper(string(body[:min(len(body), 64)]))
}

func readMessage(from io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	m := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	copy(m, head)
	_, err := io.ReadFull(from, m[5:])
	return m, err
}
