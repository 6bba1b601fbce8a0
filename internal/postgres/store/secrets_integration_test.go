//go:build integration

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

const marker = "MARKER"

// leaks looks for text in every way that an error can be shown, at every depth.
func leaks(t testing.TB, err error, secrets ...string) {
	t.Helper()
	var log bytes.Buffer
	logger := zerolog.New(&log)
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		logger.Error().Err(err).AnErr("cause", err).Str("hint", db.Hint(err)).Msg("failed")
		fmt.Fprintf(&log, "%v %+v %s %q\n", err, err, err, err)
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				walk(inner)
			}
		}
	}
	walk(err)
	for _, s := range secrets {
		if strings.Contains(log.String(), s) {
			t.Fatalf("%q in %s", s, log.String())
		}
	}
}

// marked is a row with the marker in every field that is text.
func marked(raise string) pipeline.Row {
	r := full(marker+"-id", noon, 1)
	for _, field := range []*string{&r.Log.Path.V, &r.Log.Service.V, &r.Log.RequestedBy.V, &r.Log.OPAID.V, &r.Log.OPAVersion.V} {
		*field = marker
	}
	r.Topic = marker
	r.Log.Labels, r.Log.Bundles = []byte(`{"`+marker+`":1}`), []byte(`{"`+marker+`":{}}`)
	r.Log.Raw = fmt.Appendf(nil, `{"decision_id":"%s","raise":%q}`, marker, raise)
	return r
}

func TestError_NothingOfARow(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.RaiseMarked(t)
	pg := open(t, d.URL, 0)
	for _, state := range []string{"22001", "22003", "22012", "22P02", "23502", "23503", "23505", "23514", "40001", "42501", "42P01",
		"53100", "54000", "57014", "57P01", "58030", "P0001", "XX000", "XX001", "ABCDE"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			leaks(t, code(t, pg, state, marked(state)), marker, "refused", "Failing row")
		})
	}
	t.Run("of the server itself", func(t *testing.T) {
		t.Parallel()
		d := pgtest.NewPlain(t)
		d.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT odd CHECK (path IS NULL); CREATE UNIQUE INDEX other ON decision_logs (requested_by)`)
		db := open(t, d.URL, 0)
		leaks(t, code(t, db, "23514", marked("")), marker)
		a, b := row("a", noon, `{}`), row("b", noon, `{}`)
		a.Log.RequestedBy, b.Log.RequestedBy = some(marker), some(marker)
		leaks(t, code(t, db, "23505", a, b), marker)
		leaks(t, code(t, db, "22P02", row(marker, noon, `{"`+marker+`":`+marker+`}`)), marker)
	})
	t.Run("of the probe", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.RaiseAll(t, pgtest.Fault{Code: "P0001", Text: marker, Constraint: "it's " + marker[:2] + "\n\x1b[31m", Column: "c", Table: "t"})
		err := db0(t, d).Probe(context.Background(), noon)
		leaks(t, err, marker, "docket-probe", "\x1b")
		var s *db.ServerError
		if !errors.As(err, &s) || s.ConstraintName() != "it?s?MA???31m" {
			t.Fatalf("constraint: %q", s.ConstraintName())
		}
	})
}

func db0(t testing.TB, d *pgtest.DB) *store.Store { return open(t, d.URL, 0) }

func TestError_NothingOfTheURL(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "s3cretpassw0rd"
	withUser := func(user string) string {
		c := *u
		c.User = url.UserPassword(user, secret)
		return c.String()
	}
	gone := *u
	gone.Path = "/nowhere_" + secret
	tlsWanted := *u
	tlsWanted.User, tlsWanted.RawQuery = url.UserPassword(u.User.Username(), secret), "sslmode=require"
	for name, c := range map[string]struct{ url, code string }{
		"unknown role":     {withUser("nobody_" + secret), ""}, // 28P01, or 28000 where the server trusts everybody
		"unknown database": {gone.String(), "3D000"},
		"nobody listens":   {"postgres://docket:" + secret + "@127.0.0.1:1/docket?sslmode=disable", "network"},
		"no such host":     {"postgres://docket:" + secret + "@docket.invalid:5432/docket", ""},
		"no TLS there":     {tlsWanted.String(), "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := open(t, c.url, 5*time.Second)
			for _, fresh := range []bool{false, true} {
				_, err := pg.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, fresh)
				if err == nil {
					t.Fatal("no error")
				}
				leaks(t, err, secret)
				if c.code != "" {
					wantCode(t, nil, err, c.code)
				}
				if db.Hint(err) == "" {
					t.Fatalf("no hint for %v", err)
				}
				v := errclass.Classify(err)
				if v.Class == errclass.Unknown {
					t.Fatalf("%v is not recognised", err)
				}
			}
			_, err := schema.New(pg.DB).Migrate(context.Background())
			leaks(t, err, secret)
			for _, c := range schema.New(pg.DB).Check(context.Background(), pg.Probe) {
				if strings.Contains(c.Detail+c.Hint, secret) {
					t.Fatalf("%+v", c)
				}
			}
		})
	}
}
