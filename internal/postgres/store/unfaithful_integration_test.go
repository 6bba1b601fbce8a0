//go:build integration

package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
)

// A decision that an earlier release stored as it came, and that has a twin now, is the same when it comes again.
func TestUnfaithful_RowOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	const came = `{"decision_id":"a","timestamp":"2024-05-01T12:00:00Z","x":[1e30000,1e30000,1e30000]}`
	d.Exec(t, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('a', '2024-05-01T12:00:00Z', '`+came+`', 't', 0, 1, 0)`)
	row := func(value string) pipeline.Row {
		record, refused := decision.Decode([]byte(value), 1<<20)
		if refused != nil || record.Parts[0].Err != nil || record.Parts[0].Log.Unfaithful == nil {
			t.Fatalf("refused: %v, or jsonb can hold it", refused)
		}
		return pipeline.Row{Log: &record.Parts[0].Log, Topic: "t", Offset: 1}
	}
	for value, want := range map[string]pipeline.Outcome{came: pipeline.Present, strings.Replace(came, "1e30000]", "1e30001]", 1): pipeline.Conflicting} {
		r := row(value)
		for range 2 {
			outcomes, err := db.Store(context.Background(), []pipeline.Row{r}, false)
			if err != nil {
				t.Fatal(err)
			}
			same(t, outcomes, []pipeline.Outcome{want})
		}
		outcomes, err := db.Compare(context.Background(), []*decision.Log{r.Log})
		if err != nil {
			t.Fatal(err)
		}
		same(t, outcomes, []pipeline.Outcome{want})
	}
}

// A decision with a twin is found equal to the very bytes that came, and to nothing else.
func TestUnfaithful_LookedUp(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 0)
	for i, member := range []string{`"x":[1e30000,1e30000,1e30000]`, `"x":"\u0000"`, `"x":"\ud800"`, `"x":1e200000`, `"x":"\ufffd"`} {
		value := fmt.Sprintf(`{"decision_id":"d-%d","timestamp":"2024-05-01T12:00:00Z",%s}`, i, member)
		record, refused := decision.Decode([]byte(value), 1<<20)
		if refused != nil || record.Parts[0].Err != nil {
			t.Fatalf("%s is refused", value)
		}
		log := &record.Parts[0].Log
		if _, err := db.Store(context.Background(), []pipeline.Row{{Log: log, Topic: "t", Offset: int64(i)}}, false); err != nil {
			t.Fatal(err)
		}
		twin := strings.NewReplacer(`\u0000`, `\ufffd`, `\ud800`, `\ufffd`, `1e200000`, `"1e200000"`, `,1e30000]`, `,"1e30000"]`).Replace(value)
		for raw, equal := range map[string]bool{value: true, twin: twin == value, strings.Replace(value, "}", `,"y":1}`, 1): false} {
			found, err := db.Lookup(t.Context(), []store.Sought{{ID: log.ID, Time: log.Time, Raw: []byte(raw)}})
			if err != nil || len(found) != 1 || found[0].Equal != equal {
				t.Errorf("%s beside %s: %+v, %v", raw, value, found, err)
			}
		}
	}
}
