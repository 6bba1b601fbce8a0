package store_test

import (
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

// A role, a database or a URL that has another client_encoding changes nothing of what is stored.
func TestClientEncoding(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u@db/x?sslmode=disable", "postgres://u@db/x?sslmode=disable&client_encoding=LATIN1"} {
		synctest.Test(t, func(t *testing.T) {
			server := pgmodel.New(pgmodel.Config{Encoding: "LATIN1"})
			t.Cleanup(server.Close)
			db, err := store.Open(db.Config{URL: url, Dialer: server.Dial}, zerolog.Nop())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Store(t.Context(), []pipeline.Row{{Topic: "t", Log: logAt("é", midday)}}, false); err != nil {
				t.Fatal(err)
			}
			same(t, server.Rows()[0].DecisionID, "é")
		})
	}
}

// A pooler that hands on no client_encoding is a fault of the set-up.
func TestClientEncoding_Pooler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := pgmodel.New(pgmodel.Config{Encoding: "WIN1252", Pooled: true})
		t.Cleanup(server.Close)
		db := openModel(t, server)
		_, err := db.Store(t.Context(), []pipeline.Row{{Topic: "t", Log: logAt("é", midday)}}, false)
		if v := errclass.Classify(err); v.Class != errclass.Systemic || v.Code != errclass.CodeConfig {
			t.Errorf("class %v, code %s: %v", v.Class, v.Code, err)
		}
		same(t, len(server.Rows()), 0)
	})
}
