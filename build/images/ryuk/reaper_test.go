package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const never = time.Hour // longer than any test

func TestReaper_WaitsForTheLastConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	r := newReaper()
	accepted := make(chan struct{})
	go func() { r.accept(listener); close(accepted) }()
	awaited := make(chan struct{})
	go func() { r.await(t.Context(), never, time.Millisecond); close(awaited) }()

	one, two := dial(t, listener), dial(t, listener)
	ask(t, one, "label=org.testcontainers.sessionId%3Dabc&label=b")
	ask(t, two, "label=c=d")
	ask(t, two, "label=c=d")
	for _, wide := range []string{"label=", "all=1", "", "label=e&label="} {
		if _, err := fmt.Fprintln(two, wide); err != nil {
			t.Fatalf("ask: %v", err)
		}
	}
	ask(t, two, "label=last") // in order: when it is acknowledged, the wide ones were read
	_ = one.Close()
	select {
	case <-awaited:
		t.Fatal("stopped waiting while a run was connected")
	case <-time.After(50 * time.Millisecond):
	}
	_ = two.Close()
	<-awaited
	_ = listener.Close()
	<-accepted

	var labels []string
	for _, filters := range r.filters() {
		labels = append(labels, filters["label"]...)
	}
	slices.Sort(labels)
	if want := []string{"b", "c=d", "last", "org.testcontainers.sessionId=abc"}; !slices.Equal(labels, want) {
		t.Errorf("filters %q, want %q", labels, want)
	}
	close(r.changed)
}

func TestReaper_EndsWithoutConnections(t *testing.T) {
	t.Parallel()
	r := newReaper()
	r.await(t.Context(), time.Millisecond, never)
	if n := len(r.filters()); n != 0 {
		t.Errorf("%d filters from nobody", n)
	}
	close(r.changed)
}

func dial(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	return conn
}

func ask(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatalf("ask: %v", err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); answer != "ACK\n" {
		t.Fatalf("answer %q, %v", answer, err)
	}
}

func TestPrune_ContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var removed []string
	filters := `{"label":["a=b"]}`
	mux := http.NewServeMux()
	list := func(path, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if got := r.URL.Query().Get("filters"); got != filters {
				t.Errorf("%s asked with %s, want %s", path, got, filters)
			}
			_, _ = fmt.Fprint(w, body)
		})
	}
	list("/containers/json", `[{"Id":"c1"},{"Id":"gone"},{"Id":"stuck"},{"Id":"c2"}]`)
	list("/networks", `[{"Id":"n1"}]`)
	list("/volumes", `{"Volumes":[{"Name":"v1"}]}`)
	list("/images/json", `[]`)
	mux.HandleFunc("DELETE /", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/containers/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/containers/stuck":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			mu.Lock()
			removed = append(removed, r.URL.RequestURI())
			mu.Unlock()
			w.WriteHeader(http.StatusNoContent)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	e := &engine{client: server.Client(), base: server.URL}

	err := e.prune(context.Background(), []url.Values{{"label": {"a=b"}}})

	if err == nil {
		t.Error("a container that could not be removed was passed over in silence")
	}
	want := []string{"/containers/c1?force=1&v=1", "/containers/c2?force=1&v=1", "/networks/n1?", "/volumes/v1?force=1"}
	if !slices.Equal(removed, want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
}
