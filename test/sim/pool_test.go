//go:build synctests

package sim

import (
	"bytes"
	"sync"
	"time"

	"docket/internal/audit/conservation"
)

// pool are the records that schedules draw from. They are made once, because making samples for each schedule costs
// more than playing it. Only the seed decides which records a schedule produces.
var pool = sync.OnceValue(func() []conservation.Record {
	g, err := conservation.New(conservation.Config{
		Records: 1200, Seed: 1, FaultEvery: 5, MaxRecordBytes: maxRecordBytes,
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Samples: [][]byte{
			[]byte(`{"decision_id":"x","timestamp":"2026-03-01T12:00:00Z","path":"http/authz/allow","result":true,"requested_by":"10.0.0.7:41234","req_id":7,"labels":{"id":"opa-1","version":"1.2.0","region":"north"},"input":{"user":"` + inPayloads + `","method":"GET","path":["v1","things",17]}}`),
			[]byte(`{"timestamp":"2026-03-01T12:00:00Z","decision_id":"x","path":"k8s/admission","result":{"allowed":false,"reason":"no such namespace, ` + inPayloads + `"},"labels":{"id":"opa-2"},"bundles":{"main":{"revision":"r9"}},"metrics":{"timer_rego_query_eval_ns":12345.5}}`),
			[]byte(`{"decision_id":"x","timestamp":"2026-03-01T12:00:00Z"}`),
		},
	})
	if err != nil {
		panic(err) // the configuration above is wrong
	}
	var all []conservation.Record
	for r, ok := g.Next(); ok; r, ok = g.Next() {
		all = append(all, r)
	}
	return all
})

// twisted returns a record as it is produced.
func twisted(a arrival) conservation.Record {
	if a.Flood {
		return floods()[a.Record]
	}
	r := pool()[a.Record]
	if a.Twist != contrary || len(r.Decisions) != 1 || r.Decisions[0].Code != "" || r.Decisions[0].ID == "" || !bytes.HasPrefix(r.Decisions[0].Body, []byte("{")) {
		return r
	}
	d := r.Decisions[0]
	d.Body = append([]byte(`{"twist":"another payload",`), d.Body[1:]...)
	return conservation.Record{Key: r.Key, Value: d.Body, Decisions: []conservation.Decision{d}, Planted: "contrary"}
}
