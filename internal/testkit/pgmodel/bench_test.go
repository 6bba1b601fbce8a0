package pgmodel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

func BenchmarkServerAndConnection(b *testing.B) {
	for b.Loop() {
		s := pgmodel.New(pgmodel.Config{})
		pg := connect(b, s)
		_ = pg.Close(context.Background())
		s.Close()
	}
}

// BenchmarkStore is client and server together.
func BenchmarkStore(b *testing.B) {
	s := pgmodel.New(pgmodel.Config{})
	defer s.Close()
	db, err := store.Open(db.Config{URL: "postgres://docket@db:5432/docket?sslmode=disable", Dialer: s.Dial}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	raw := fmt.Sprintf(`{"decision_id":"x","labels":{"id":"opa-1"},"input":{"pad":%q},"result":true}`, strings.Repeat("x", 300))
	rows := make([]pipeline.Row, 20)
	n := 0
	for b.Loop() {
		for i := range rows {
			n++
			rows[i] = row(fmt.Sprint("id-", n), raw)
		}
		if _, err := db.Store(context.Background(), rows, false); err != nil {
			b.Fatal(err)
		}
	}
}
