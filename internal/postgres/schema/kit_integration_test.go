//go:build integration

package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func init() {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
}

const (
	stored  = pipeline.Stored
	present = pipeline.Present
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

func open(t testing.TB, url string, timeout time.Duration) *postgres.Store {
	t.Helper()
	st, err := postgres.OpenStore(db.Config{URL: url, StoreTimeout: timeout}, zerolog.Nop())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(st.Close)
	return st
}

// row is a decision with nothing but what every decision has.
func row(id string, at time.Time, raw string) pipeline.Row {
	return pipeline.Row{Topic: "decision-logs", Partition: 3, Offset: 42, Index: 1,
		Log: &decision.Log{ID: id, Time: at, Raw: []byte(raw)}}
}

func store(t testing.TB, st *postgres.Store, rows ...pipeline.Row) []pipeline.Outcome {
	t.Helper()
	out, err := st.Store(context.Background(), rows, false)
	if err != nil {
		t.Fatalf("store: %v", err)
	}
	return out
}

func same(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func wantCode(t testing.TB, out any, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error but %v, want %s", out, want)
	}
	if got := errclass.Classify(err).Code; got != want {
		t.Fatalf("code %s, want %s: %v", got, want, err)
	}
}

func some[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }

func full(id string, at time.Time, padding int) pipeline.Row {
	r := row(id, at, "")
	r.UploadedBy = "spiffe://shop/opa-1"
	r.Log.Path, r.Log.Service = some("shop/orders/allow"), some("shop")
	r.Log.RequestedBy, r.Log.OPAID, r.Log.OPAVersion = some("10.0.0.1:5000"), some("opa-1"), some("1.4.2")
	r.Log.Allowed, r.Log.ReqID = some(true), some(int64(77))
	r.Log.Labels, r.Log.Bundles = []byte(`{"id":"opa-1","version":"1.4.2"}`), []byte(`{"shop":{"revision":"r7"}}`)
	r.Log.Raw = fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q,"labels":%s,"bundles":%s,"path":"shop/orders/allow","result":true,"req_id":77,"input":{"pad":%q}}`,
		id, at.Format(time.RFC3339Nano), r.Log.Labels, r.Log.Bundles, strings.Repeat("x", padding))
	return r
}
