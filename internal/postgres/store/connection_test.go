package store

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
)

// Once a connection is lost the driver says goodbye on it in the background. It panics where another write comes at the
// same time.
func TestConnection_NothingSentOnceLost(t *testing.T) {
	t.Parallel()
	watched := &lostConn{closed: make(chan struct{})}
	d, err := Open(db.Config{
		URL: "postgres://docket:docket@server/docket?sslmode=disable", StoreTimeout: 10 * time.Second,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if watched.Conn != nil {
				return nil, errors.New("the server is away") // the driver's request to cancel
			}
			ours, theirs := net.Pipe()
			watched.Conn = ours
			go loseAfterTheFirstStatement(theirs)
			return watched, nil
		},
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Store(t.Context(), []pipeline.Row{madeUp.row(time.Now(), 0)}, true); err == nil {
		t.Fatal("stored on a connection that was lost")
	}
	<-watched.closed
	watched.mu.Lock()
	defer watched.mu.Unlock()
	if bytes.Contains(watched.late, []byte(db.RollbackSQL)) {
		t.Errorf("sent after the connection was lost: %q", watched.late)
	}
}

// lostConn keeps what is written after a read failed.
type lostConn struct {
	net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	lost bool
	late []byte
}

func (c *lostConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = c.lost || err != nil
	return n, err
}

func (c *lostConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		c.late = append(c.late, p...)
	}
	return c.Conn.Write(p)
}

func (c *lostConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// loseAfterTheFirstStatement is a server that lets a client in and answers the look at a new connection. It hangs up when
// it has read the beginning of a transaction.
func loseAfterTheFirstStatement(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	server := pgproto3.NewBackend(conn, conn)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for asked := 0; server.Flush() == nil; {
		message, err := server.Receive()
		if err != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.Sync:
			asked++
			server.Send(&pgproto3.ParseComplete{})
			server.Send(&pgproto3.BindComplete{})
			server.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("off"), DataTypeOID: 25, DataTypeSize: -1}}})
			server.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("off")}})
			server.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Flush:
			if asked > 0 {
				return
			}
		}
	}
}
