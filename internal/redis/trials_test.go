//go:build synctests

package redis

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/limit"
)

// answering speaks just enough of the protocol for the script: each call of it grants nothing.
func answering(conn net.Conn, asked *atomic.Int64) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	line := func() string { text, _ := r.ReadString('\n'); return strings.TrimSpace(text) }
	for {
		n, err := strconv.Atoi(strings.TrimPrefix(line(), "*"))
		if err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			line() // the length
			words[i] = line()
		}
		answer := "-ERR unknown command\r\n"
		if strings.EqualFold(words[0], "evalsha") {
			if words[5] != "0" {
				panic("a trial asks for rows: " + words[5])
			}
			asked.Add(1)
			answer = "*4\r\n:0\r\n:1\r\n:350\r\n:1\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// A program that writes nothing finds Redis again, so that no alert says for ever that it is away.
func TestLimit_FindsRedisAgainWithoutWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var asked atomic.Int64
		away.Store(true)
		dial := func(context.Context, string, string) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("refused")
			}
			far, near := net.Pipe()
			go answering(far, &asked)
			return near, nil
		}
		var told strings.Builder
		l, err := NewLimit(Config{URL: "redis://nowhere:1", Dialer: dial}, LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.New(&told))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for range calls {
			if _, _, err := l.Ask(t.Context(), true, 1, 1); err == nil {
				t.Fatal("a server that is away granted rows")
			}
		}
		if l.State() != Open {
			t.Fatalf("the breaker is %s", l.State())
		}
		time.Sleep(10 * time.Minute) // nobody asks for rows meanwhile
		synctest.Wait()
		if asked.Load() != 0 || l.State() == Closed {
			t.Fatalf("%d calls, the breaker is %s", asked.Load(), l.State())
		}
		away.Store(false)
		time.Sleep(2 * pause)
		synctest.Wait()
		lines := told.String()
		if l.State() != Closed || asked.Load() != trials || strings.Count(lines, "limits away") != 1 || strings.Count(lines, "limits back") != 1 {
			t.Errorf("the breaker is %s after %d calls: %s", l.State(), asked.Load(), lines)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked.Load() != trials {
			t.Errorf("%d calls of a closed breaker", asked.Load())
		}
	})
}
