package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
)

func breaking() []Case {
	cases := []Case{
		{"a killed session is the moment's fault", func(t *testing.T, s Server) {
			heal := s.Slow(t, 20*time.Second)
			db := open(t, s, within(time.Minute))
			done := inBackground(context.Background(), db, row("a", noon, `{}`))
			s.Busy(t)
			s.Kill(t)
			wantKilled(t, <-done)
			heal()
			same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
		}},
		{"a killed idle session costs one try at most", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`))
			s.Kill(t)
			if _, err := db.Store(context.Background(), []pipeline.Row{row("b", noon, `{}`)}, false); err != nil {
				wantKilled(t, err)
			}
			same(t, save(t, db, row("c", noon, `{}`)), []pipeline.Outcome{stored})
		}},
		{"a node that became read-only", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`))
			heal := s.ReadOnly(t)
			_, err := db.Store(context.Background(), []pipeline.Row{row("d", noon, `{}`)}, true)
			wantCode(t, nil, err, "25006")
			wantCode(t, nil, db.Probe(context.Background(), noon), "25006")
			heal()
			same(t, save(t, db, row("d", noon, `{}`)), []pipeline.Outcome{stored})
			same(t, s.Count(t), 2)
		}},
		{"a stop is nobody's fault and frees what was locked", func(t *testing.T, s Server) {
			heal := s.Slow(t, 20*time.Second)
			db := open(t, s, within(time.Minute))
			ctx, cancel := context.WithCancel(context.Background())
			done := inBackground(ctx, db, row("a", noon, `{}`))
			s.Busy(t)
			cancel()
			err := <-done
			wantCode(t, nil, err, "canceled")
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%v is not context.Canceled", err)
			}
			heal()
			same(t, save(t, open(t, s, within(10*time.Second)), row("a", noon, `{}`)), []pipeline.Outcome{stored})
		}},
	}
	for _, c := range []struct {
		at    Cut
		code  string
		after pipeline.Outcome
	}{
		{BeforeInsert, "network", stored}, {InCopy, "network", stored}, {AfterInsert, "network", stored},
		{BeforeCommit, "ambiguous_commit", stored}, {AfterCommit, "ambiguous_commit", present},
	} {
		cases = append(cases, Case{"a connection cut: " + string(c.at), func(t *testing.T, s Server) {
			db := open(t, s)
			rows := []pipeline.Row{row("a", noon, `{}`), row("b", noon, `{}`)}
			save(t, db, row("warm", noon, `{}`))
			s.Cut(t, c.at)
			refused(t, db, c.code, rows...)
			same(t, save(t, db, rows...), []pipeline.Outcome{c.after, c.after})
			same(t, s.Count(t), 3)
		}})
	}
	return cases
}

func inBackground(ctx context.Context, db *store.Store, rows ...pipeline.Row) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := db.Store(ctx, rows, false)
		done <- err
	}()
	return done
}

func waiting() []Case {
	return []Case{
		{"a slow statement ends before we do", func(t *testing.T, s Server) {
			heal := s.Slow(t, 30*time.Second)
			db := open(t, s, within(4*time.Second))
			ended(t, "57014", func() (any, error) {
				return db.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, false)
			})
			ended(t, "57014", func() (any, error) { return nil, db.Probe(context.Background(), noon) })
			heal()
			same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
		}},
		{"a slow statement that ends in time", func(t *testing.T, s Server) {
			s.Slow(t, time.Second)
			same(t, save(t, open(t, s), row("a", noon, `{}`)), []pipeline.Outcome{stored})
		}},
		{"a locked table is told from a slow statement", func(t *testing.T, s Server) {
			unlock := s.Lock(t)
			db := open(t, s, within(4*time.Second))
			begin := time.Now()
			ended(t, "55P03", func() (any, error) {
				return db.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, false)
			})
			if took := time.Since(begin); took < 1500*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			ended(t, "55P03", func() (any, error) { return nil, db.Probe(context.Background(), noon) })
			unlock()
			same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
		}},
		{"a lock that goes in time", func(t *testing.T, s Server) {
			unlock := s.Lock(t)
			db := open(t, s)
			done := inBackground(context.Background(), db, row("a", noon, `{}`))
			s.Busy(t)
			unlock()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			same(t, s.Count(t), 1)
		}},
		{"our deadline holds where the server has none", func(t *testing.T, s Server) {
			s.SlowCommit(t, 30*time.Second)
			db := open(t, s, within(5*time.Second))
			err := refused(t, db, "ambiguous_commit", row("a", noon, `{}`))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("no deadline in %v", err)
			}
		}},
		{"a full pool is told", func(t *testing.T, s Server) {
			s.Slow(t, 20*time.Second) // the only connection is busy during this test
			db := open(t, s, within(time.Minute), func(c *db.Config) { c.MaxConns = 1 })
			first, stop := context.WithCancel(context.Background())
			defer stop()
			done := inBackground(first, db, row("a", noon, `{}`))
			s.Busy(t)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_, err := db.Store(ctx, []pipeline.Row{row("b", noon, `{}`)}, false)
			wantCode(t, nil, err, "pool_exhausted")
			stop()
			wantCode(t, nil, <-done, "canceled")
		}},
		{"writers of one row wait for each other", func(t *testing.T, s Server) {
			s.Slow(t, time.Second)
			first, second := open(t, s), open(t, s)
			a := inBackground(context.Background(), first, row("a", noon, `{}`), row("b", noon, `{}`))
			b := inBackground(context.Background(), second, row("a", noon, `{}`), row("b", noon, `{}`))
			if err := errors.Join(<-a, <-b); err != nil {
				t.Fatal(err)
			}
			same(t, s.Count(t), 2)
		}},
	}
}
