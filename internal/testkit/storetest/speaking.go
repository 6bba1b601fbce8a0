package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/postgres/db"
)

const (
	question = `SELECT current_setting('transaction_read_only')`
	nonsense = `SELEC nonsense`
)

// Nonsense says whether sql is what a case sends on purpose although no server knows it.
func Nonsense(sql string) bool { return sql == nonsense }

func speaking() []Case {
	return []Case{
		{"after an error a transaction only takes its end", func(t *testing.T, s Server) {
			pg := connect(t, s.Config())
			same(t, []string{ask(pg, `BEGIN`), status(pg)}, []string{"BEGIN", "T"})
			same(t, []string{ask(pg, question), status(pg)}, []string{"SELECT 1", "T"})
			same(t, []string{ask(pg, nonsense), status(pg)}, []string{"42601", "E"})
			same(t, []string{ask(pg, question), status(pg)}, []string{"25P02", "E"})
			same(t, []string{ask(pg, `COMMIT`), status(pg)}, []string{"ROLLBACK", "I"})
			same(t, []string{ask(pg, question), status(pg)}, []string{"SELECT 1", "I"})
			same(t, []string{ask(pg, `ROLLBACK`), ask(pg, `COMMIT`), status(pg)}, []string{"ROLLBACK", "COMMIT", "I"})
		}},
		{"after an error all is skipped until Sync", func(t *testing.T, s Server) {
			pipe := connect(t, s.Config()).StartPipeline(context.Background())
			for _, sql := range []string{`BEGIN`, nonsense, question} {
				pipe.SendQueryParams(sql, nil, nil, nil, nil)
			}
			pipe.SendPipelineSync()
			pipe.SendQueryParams(`ROLLBACK`, nil, nil, nil, nil)
			pipe.SendQueryParams(question, nil, nil, nil, nil)
			if err := pipe.Sync(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for range 6 {
				got = append(got, result(pipe))
			}
			same(t, got, []string{"BEGIN", "42601", "sync", "ROLLBACK", "SELECT 1", "sync"})
			if err := pipe.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"an empty query is answered", func(t *testing.T, s Server) {
			if err := connect(t, s.Config()).Exec(context.Background(), "-- ping").Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"a late cancel request changes nothing", func(t *testing.T, s Server) {
			pg := connect(t, s.Config())
			same(t, ask(pg, `BEGIN`), "BEGIN")
			if err := pg.CancelRequest(context.Background()); err != nil {
				t.Fatal(err)
			}
			same(t, ask(pg, `ROLLBACK`), "ROLLBACK")
		}},
	}
}

func connect(t testing.TB, cfg db.Config) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.ParseConfig(cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Dialer != nil {
		c.DialFunc = cfg.Dialer
		c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	pg, err := pgconn.ConnectConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close(context.Background()) })
	return pg
}

// ask sends one statement and gives its tag, or the code of its error.
func ask(pg *pgconn.PgConn, sql string) string {
	r := pg.ExecParams(context.Background(), sql, nil, nil, nil, nil).Read()
	return said(r.CommandTag, r.Err)
}

func said(tag pgconn.CommandTag, err error) string {
	var e *pgconn.PgError
	switch {
	case errors.As(err, &e):
		return e.Code
	case err != nil:
		return err.Error()
	}
	return tag.String()
}

func result(pipe *pgconn.Pipeline) string {
	r, err := pipe.GetResults()
	if err != nil {
		return said(pgconn.CommandTag{}, err)
	}
	switch r := r.(type) {
	case *pgconn.ResultReader:
		return said(r.Close())
	case *pgconn.PipelineSync:
		return "sync"
	}
	return "nothing"
}

func status(pg *pgconn.PgConn) string { return string(pg.TxStatus()) }
