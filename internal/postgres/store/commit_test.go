package store

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"docket/internal/errclass"
)

// TestCommit_AnsweredWithARollback has a server that says ROLLBACK to COMMIT, without an error, as
// Postgres does after an error of the transaction was swallowed.
func TestCommit_AnsweredWithARollback(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{"COMMIT": "", "ROLLBACK": errclass.CodeCommitRollback} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			answerCommit(far, tag)
		}()
		cfg, err := pgconn.ParseConfig("postgres://u@nowhere/d?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		cfg.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"nowhere"}, nil }
		cfg.DialFunc = func(context.Context, string, string) (net.Conn, error) { return near, nil }
		pg, err := pgconn.ConnectConfig(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = newTransaction(ctx, pg).commit()
		if (err == nil) != (want == "") || err != nil && errclass.Classify(err).Code != want {
			t.Errorf("%s: %v, want %q", tag, err, want)
		}
		_ = near.Close()
		<-served
	}
}

// answerCommit is a server that takes any login and answers every statement with one tag.
func answerCommit(conn net.Conn, tag string) {
	defer func() { _ = conn.Close() }()
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if b.Flush() != nil {
		return
	}
	for {
		message, err := b.Receive()
		if err != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.Parse:
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			b.Send(&pgproto3.NoData{})
		case *pgproto3.Execute:
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			if b.Flush() != nil {
				return
			}
		}
	}
}
