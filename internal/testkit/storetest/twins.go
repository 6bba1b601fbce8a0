package storetest

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/audit/verify"
	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
)

// came is a row of a decision as the decoder reads it.
func came(t testing.TB, member string) pipeline.Row {
	t.Helper()
	value := fmt.Sprintf(`{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z",%s}`, member)
	record, refusal := decision.Decode([]byte(value), 1<<20)
	if refusal != nil || record.Parts[0].Err != nil {
		t.Fatalf("%s is refused: %v, %v", value, refusal, record.Parts)
	}
	r := row("a", noon, "")
	r.Log = &record.Parts[0].Log
	return r
}

// twins are decisions that jsonb cannot hold as they came.
func twins() []Case {
	var cases []Case
	for name, member := range map[string]string{
		"U+0000": `"x":{"~/\u0000\"\\{}":"a\u0000b,"}`, "a lone surrogate": `"x":["\ud800",1]`, "a number": `"x":1e200000`,
		"many digits": `"x":[1e30000,1e30000,1e30000]`, "a long one": `"x":"\u0000` + strings.Repeat("x", 300_000) + `"`,
	} {
		cases = append(cases, Case{"what jsonb cannot hold has a twin: " + name, func(t *testing.T, s Server) {
			db := open(t, s)
			r := came(t, member)
			if r.Log.Unfaithful == nil {
				t.Fatal("jsonb can hold it")
			}
			same(t, save(t, db, r), []pipeline.Outcome{stored})
			if !verify.SameJSON([]byte(s.Raw(t, "a", r.Log.Time)), r.Log.Raw) {
				t.Fatalf("the row has %.200s, the twin is %.200s", s.Raw(t, "a", r.Log.Time), r.Log.Raw)
			}
			same(t, save(t, db, r, r), []pipeline.Outcome{present, present})
			same(t, s.Count(t), 1)
		}})
	}
	nul, surrogate, faithful := `"x":"\u0000"`, `"x":"\ud800"`, `"x":"\ufffd"` // which have one twin
	for _, pair := range [][2]string{{nul, surrogate}, {nul, faithful}, {faithful, nul}} {
		cases = append(cases, Case{fmt.Sprintf("two decisions of one twin are two: %s and %s", pair[0], pair[1]), func(t *testing.T, s Server) {
			db := open(t, s)
			first, second := came(t, pair[0]), came(t, pair[1])
			same(t, save(t, db, first), []pipeline.Outcome{stored})
			same(t, save(t, db, second, first), []pipeline.Outcome{conflicting, present})
			s.Forget(t)
			same(t, save(t, db, second), []pipeline.Outcome{conflicting})
		}})
	}
	return append(cases, Case{"a table that takes no COPY knows what jsonb cannot hold by what came", func(t *testing.T, s Server) {
		cfg := s.NoCopy(t)
		db := open(t, s, func(c *db.Config) { *c = cfg })
		first, second := came(t, nul), came(t, surrogate)
		same(t, save(t, db, first), []pipeline.Outcome{stored})
		same(t, save(t, db, second, first), []pipeline.Outcome{conflicting, present})
	}})
}
