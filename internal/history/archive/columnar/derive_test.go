package columnar

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"docket/internal/record/subject"
)

// oddPayloads are lines with payloads of all kinds, as jsonb prints them.
func oddPayloads() (all [][]byte) {
	for i, columns := range []string{
		``, `"raw":null`, `"raw":7`, `"raw":"text"`, `"raw":[1, {"error": 2}]`, `"raw":{}`, `"labels":5,"raw":{}`, `"labels":["a"],"raw":{"labels": ["a"]}`,
		`"raw":{"error": {"code": "x"}}`, `"raw":{"error": null, "result": null}`, `"allowed":true,"raw":{"error": 1, "result": true}`, `"raw":{"result": {"allow": 1}}`,
		`"raw":{"input": {"user": "u1"}}`, `"raw":{"input": {"user": 17}}`, `"raw":{"input": {"user": ""}}`, `"raw":{"input": [{"user": "u"}]}`,
		`"raw":{"revision": "r1"}`, `"raw":{"revision": 5}`, `"raw":{"revision": "r1", "bundles": {"b": {"revision": "r2"}}}`, `"raw":{"bundles": {"b": {}}}`,
		`"bundles":{"b": {"revision": "r3"}},"raw":{"bundles": {"b": {"revision": "r3"}}}`, `"bundles":{"b": {"revision": "r3"}},"raw":{"bundles": {"b": {"revision": "r4"}}}`,
		`"bundles":{"b": {"revision": "r3"}},"raw":{"result": 1}`, `"requested_by":"10.0.0.1:80","raw":{"requested_by": "10.0.0.1:80"}`, `"requested_by":"10.0.0.1:80","raw":{"requested_by": "10.0.0.2:80"}`,
		`"requested_by":"10.0.0.1:80","raw":{}`, `"requested_by":"host","raw":{"requested_by": "host"}`, `"labels":{"app": "a"},"raw":{"labels": {"app": "a"}}`, `"labels":{"app": "a"},"raw":{"labels": {"app": "b"}}`,
		`"raw":{"path": "p", "req_id": 5, "timestamp": "2026-08-01T00:00:00Z", "decision_id": "d"}`, `"path":"p","req_id":5,"raw":{"path": "p", "req_id": 5, "timestamp": "2026-08-01T00:00:00.000000123Z", "decision_id": "d"}`,
		`"path":"a\"b","raw":{"path": "a\"b", "er\u0072or": 1}`, `"raw":{"x": "}{\",:", "error": "z"}`,
	} {
		id := "d"
		if i%2 == 0 {
			id = fmt.Sprint("d", i)
		}
		all = append(all, []byte(strings.TrimSuffix(fmt.Sprintf(`{"decision_id":"%s","ts":"2026-08-01T00:00:00+00:00",%s`, id, columns), ",")+"}"))
	}
	return all
}

// TestProve_DerivesAsAWriter: a proof derives what a writer derives, from any payload and with any setting of the subject.
func TestProve_DerivesAsAWriter(t *testing.T) {
	t.Parallel()
	rows := slices.Concat(oddPayloads(), lines(t, 200, 3))
	for _, by := range []string{"requested_by", "requested_by:host", "label:app", "label:id", "input:/user", "input:/0/user", "decision_id"} {
		spec, err := subject.Parse(by)
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLayout(table())
		if err != nil {
			t.Fatal(err)
		}
		w := func() *Writer {
			return &Writer{layout: l, subject: spec, cells: make([][]byte, len(l.columns)), sets: map[[repeatedCount]bool]string{}, revisionsOf: revisions{}, builder: builder{layout: l}}
		}
		quick, differ := 0, map[string]bool{}
		for _, line := range rows {
			row, err := w().row(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			row = slices.Clone(row)
			c := &checker{proof: &proof{f: &File{layout: l}}, again: w(), builder: builder{layout: l}}
			c.builder.notes = &c.seen
			built, err := c.builder.line(nil, row)
			if err != nil || string(built) != string(line) {
				t.Fatalf("%s is built as %s, %v", line, built, err)
			}
			made, columns, err := c.made(row, built)
			if err != nil {
				t.Fatal(err)
			}
			if len(columns) < l.leaves {
				quick++
			}
			for _, i := range columns {
				if made[i].IsNull() != row[i].IsNull() || !row[i].IsNull() && !parquet.Equal(made[i], row[i]) {
					t.Errorf("%s, %s: column %s is %v, and a writer makes %v", by, line, l.schema.Fields()[i].Name(), made[i], row[i])
				}
			}
			differ[row[l.added[Subject]].String()+row[l.added[Revision]].String()+row[l.added[Verdict]].String()] = true
		}
		if quick < len(rows)-10 || len(differ) < 8 {
			t.Errorf("%s: %d of %d rows need no second split, and there are %d different rows", by, quick, len(rows), len(differ))
		}
	}
}
