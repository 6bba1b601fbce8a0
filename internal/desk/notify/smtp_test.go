package notify

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// mailServer speaks enough SMTP for a client.
type mailServer struct {
	net.Listener
	silent bool // it takes connections and says nothing
	auth   int  // answer to AUTH

	mu    sync.Mutex
	mails []string
	conns []net.Conn
	all   sync.WaitGroup
}

func newMailServer(t *testing.T, silent bool, auth int) *mailServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &mailServer{Listener: l, silent: silent, auth: auth}
	s.all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			if !silent {
				s.all.Go(func() { s.talk(conn) })
			}
		}
	})
	t.Cleanup(s.stop)
	return s
}

// hangUp ends every connection.
func (s *mailServer) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

func (s *mailServer) stop() {
	_ = s.Close()
	s.hangUp()
	s.all.Wait()
}

func (s *mailServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *mailServer) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.mails...)
}

func (s *mailServer) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewScanner(conn)
	say := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 test")
	for in.Scan() {
		verb, _, _ := strings.Cut(strings.ToUpper(in.Text()), " ")
		switch verb {
		case "EHLO":
			say("250-test\r\n250 AUTH PLAIN")
		case "AUTH":
			say(fmt.Sprintf("%d s3cretw0rd as the server quotes it", s.auth))
		case "DATA":
			say("354 go on")
			var mail strings.Builder
			for in.Scan() && in.Text() != "." {
				mail.WriteString(in.Text() + "\n")
			}
			s.mu.Lock()
			s.mails = append(s.mails, mail.String())
			s.mu.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}
