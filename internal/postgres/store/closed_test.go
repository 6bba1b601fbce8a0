package store

import (
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/record/decision"
)

func TestClose_AllCallsSaySo(t *testing.T) {
	t.Parallel()
	db, err := Open(db.Config{URL: "postgres://127.0.0.1:1/d"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	rows := []pipeline.Row{{Log: &decision.Log{ID: "a"}}}
	_, pooled := db.Store(t.Context(), rows, false)
	_, fresh := db.Store(t.Context(), rows, true)
	_, migrated := schema.New(db.DB).Migrate(t.Context())
	for _, err := range []error{pooled, fresh, migrated, db.Probe(t.Context(), time.Now())} {
		if got := errclass.Classify(err).Code; got != errclass.CodePoolClosed {
			t.Errorf("%s: %v", got, err)
		}
	}
}

func TestStore_SilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	db, err := Open(db.Config{URL: "postgres://docket@" + l.Addr().String() + "/docket?sslmode=disable", StoreTimeout: 200 * time.Millisecond}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for _, fresh := range []bool{false, true} {
		_, err := db.Store(t.Context(), []pipeline.Row{{Log: &decision.Log{ID: "a"}}}, fresh)
		if got := errclass.Classify(err).Code; got != errclass.CodeTimeout {
			t.Errorf("fresh %v: %s: %v", fresh, got, err)
		}
	}
}
