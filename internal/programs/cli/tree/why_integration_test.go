//go:build integration

package tree_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/history/reader"
	"docket/internal/record/decision"
	"docket/internal/record/subject"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/readertest"
	"docket/sample"
)

// TestWhy_RealTable: the sample is explained as plain code in memory explains it, of every path and by every kind of subject.
func TestWhy_RealTable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := &ledgerCLI{t: t, url: db.URL}
	s, _, err := config.LoadWith(config.Desk, []string{"DOCKET_DATABASE_URL=" + db.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := app.OpenDatabase(s, config.Desk, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	model := &readertest.Store{}
	if err := model.AddRaw(sample.DecisionLogs()...); err != nil {
		t.Fatal(err)
	}
	var rows []pipeline.Row
	var ids []string
	perPath := map[string]int{}
	for i, raw := range sample.DecisionLogs() {
		record, refused := decision.Decode(raw, int64(len(raw)))
		if refused != nil {
			t.Fatal(refused)
		}
		log := record.Parts[0].Log
		log.Pieces = nil // they are the decoder's
		rows = append(rows, pipeline.Row{Topic: "decision-logs", Offset: int64(i), Log: &log})
		if perPath[log.Path.V]++; perPath[log.Path.V]%40 == 8 {
			ids = append(ids, log.ID)
		}
	}
	if _, err := pool.Store(t.Context(), rows, false); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		by := []string{"requested_by:host", "input:/user", "label:app", "requested_by"}[i%4]
		spec, err := subject.Parse(by)
		if err != nil {
			t.Fatal(err)
		}
		found, err := model.ByID(t.Context(), id)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v", id, err)
		}
		want, err := reader.Why(t.Context(), model, found[0], reader.Question{Subject: spec, Neighbours: 3, SameInput: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := d.run(0, "", "why", id, "--json", "--same-input", "--subject", by)
		told := plainTree(t, []byte(got))
		if all, ok := told.(map[string]any); ok { // the explanation alone, and not where else was looked
			maps.DeleteFunc(all, func(name string, _ any) bool { return name == "looked" || name == "not_looked" })
		}
		if diff := cmp.Diff(plainTree(t, text), told); diff != "" {
			t.Errorf("%s by %s:\n%s", id, by, diff)
		}
	}
	d.has(d.run(0, "", "why", "e5e72bf0-077f-4b3a-8169-32d13cfbaa31", "--subject", "input:/user"), "denied", "blocked_software failed for alice", "e6d0f515-0289-41b7-87b4-52735b980883")
	d.has(d.run(0, "", "diff", ids[0], ids[1]), "A  "+ids[0], "B  "+ids[1])
	d.has(d.run(0, "", "why", ids[0][:8]), "Decision "+ids[0])
	d.has(d.run(1, "", "why", "no such one"), "docket where-is 'no such one'")
}

// plainTree is JSON with its numbers as values: jsonb writes them in a way of its own.
func plainTree(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
