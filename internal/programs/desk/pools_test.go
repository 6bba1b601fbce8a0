package desk

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// silent is a database that takes connections and never answers; it knows which pool each is of.
type silent struct {
	mu    sync.Mutex
	dials map[string]int // by application_name
}

// named is the client's end of such a connection.
type named struct {
	net.Conn
	db   *silent
	once sync.Once
}

func (s *silent) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, server); _ = server.Close() }()
	return &named{Conn: client, db: s}, nil
}

func (n *named) Write(b []byte) (int, error) {
	n.once.Do(func() {
		if _, rest, ok := bytes.Cut(b, []byte("application_name\x00")); ok {
			name, _, _ := bytes.Cut(rest, []byte{0})
			n.db.mu.Lock()
			n.db.dials[string(name)]++
			n.db.mu.Unlock()
		}
	})
	return n.Conn.Write(b)
}

func (s *silent) of(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials[name]
}

// TestPools_WhoAsksDoesNotStopTheWork: many ask by the API, and nobody answers them. The desk still tries its own work.
func TestPools_WhoAsksDoesNotStopTheWork(t *testing.T) {
	t.Parallel()
	db := &silent{dials: map[string]int{}}
	const token = "a-token-of-many-characters-0123456789"
	reg := prometheus.NewRegistry()
	p, err := New(settings(t, nowhere("DOCKET_DESK_API_TOKENS=mara:operator:"+token)), zerolog.Nop(), reg, Options{DialDatabase: db.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var asking sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{}}
	for range 3 * askers {
		asking.Go(func() {
			q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.apiAddr()+"/api/v1/dead-letters", http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			q.Header.Set("Authorization", "Bearer "+token)
			if r, err := client.Do(q); err == nil {
				_ = r.Body.Close()
			}
		})
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, db.dials)
			}
		}
	}
	until("all connections of the API are in use", func() bool { return db.of("docket-docket-api") >= askers })
	before := db.of("docket-docket")
	until("the desk works on", func() bool { return db.of("docket-docket") > before })
	// A login asks for sessions, which no search keeps waiting.
	asking.Go(func() {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.apiAddr()+"/", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		q.AddCookie(&http.Cookie{Name: "docket", Value: strings.Repeat("A", 43)})
		if r, err := client.Do(q); err == nil {
			_ = r.Body.Close()
		}
	})
	until("the session is asked for", func() bool { return db.of("docket-docket-sessions") > 0 })
	most := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "docket_postgres_pool_max_connections" {
			for _, m := range f.GetMetric() {
				most[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if len(most) != 3 || most["work"] != 2*askers || most["api"] != askers || most["sessions"] != sessionConns {
		t.Errorf("the pools have %v", most)
	}
	stop()
	asking.Wait()
	client.CloseIdleConnections()
	if err := <-ended; err != nil {
		t.Errorf("stopped, it ended with %v", err)
	}
}

// askers is how many connections the API has.
const askers = 8
