package store

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
)

// A pooler counts what it still owes us, and where the end of a COPY comes before its beginning it never gets it right:
// the server stays ours.
func TestCopy_RowsOnlyOnceAskedFor(t *testing.T) {
	t.Parallel()
	heard, dialled := make(chan pgproto3.FrontendMessage, 1), false
	d, err := Open(db.Config{
		URL: "postgres://docket:docket@server/docket?sslmode=disable", StoreTimeout: 10 * time.Second,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if dialled {
				return nil, errors.New("the server is away") // the driver's request to cancel
			}
			dialled = true
			ours, theirs := net.Pipe()
			go refuseToCopy(theirs, heard)
			return ours, nil
		},
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Store(t.Context(), []pipeline.Row{madeUp.row(time.Now(), 0)}, true)
	if s, ok := db.AsServerError(err); !ok || s.SQLState() != "42501" {
		t.Errorf("not what the server said: %v", err)
	}
	switch m := (<-heard).(type) {
	case nil, *pgproto3.CopyData, *pgproto3.CopyDone:
		t.Errorf("%T for a COPY that never began", m)
	}
}

// refuseToCopy is a server that lets a client in, does whatever is asked but for COPY, and passes on what it hears next.
func refuseToCopy(conn net.Conn, heard chan<- pgproto3.FrontendMessage) {
	defer close(heard)
	defer func() { _ = conn.Close() }()
	server := pgproto3.NewBackend(conn, conn)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	refused, status := false, byte('I')
	for server.Flush() == nil {
		message, err := server.Receive()
		if err != nil {
			return
		}
		if refused {
			refused = false
			heard <- message
		}
		switch m := message.(type) {
		case *pgproto3.Parse:
			switch m.Query {
			case beginSQL:
				status = 'T'
			case db.RollbackSQL:
				status = 'I'
			}
			server.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			server.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			server.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("off"), DataTypeOID: 25, DataTypeSize: -1}}})
		case *pgproto3.Execute:
			server.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("off")}})
			server.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			server.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		case *pgproto3.Query:
			refused = true
			server.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42501", Message: "permission denied"})
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'E'})
		}
	}
}
