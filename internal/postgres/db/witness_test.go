package db

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestWitness_WhoseTimeIsJustOver has a witness taken out at the moment at which its timer fires: the timer finds it no more, so
// whoever took it hangs up.
func TestWitness_WhoseTimeIsJustOver(t *testing.T) {
	t.Parallel()
	cfg, err := pgconn.ParseConfig("postgres://nobody@localhost/nothing?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	pg, err := pgconn.Construct(&pgconn.HijackedConn{Conn: ours, Config: cfg, TxStatus: 'I'})
	if err != nil {
		t.Fatal(err)
	}
	fired := time.NewTimer(0)
	<-fired.C
	w := witnesses{idle: []*witness{{pg: pg, until: time.Now().Add(-time.Nanosecond), age: fired}}}
	taken := make(chan *witness, 1)
	go func() { taken <- w.take(t.Context()) }()
	if err := theirs.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, theirs); err != nil {
		t.Errorf("nobody hung up: %v", err)
	}
	if one := <-taken; one != nil {
		t.Error("it is asked on beyond its time")
	}
}
