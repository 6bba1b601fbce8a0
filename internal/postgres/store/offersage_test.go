package store_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgmodel"
)

// Days ago one bad record of another partition had its batch refused. All is well since. Then a wrong CHECK takes no decision of
// today. The table is at fault, and the records hold.
func TestUsersCheck_OldOffers(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.Constrain(pgmodel.Constraint{Name: "path", Columns: []string{"path"}, Refuses: func(r pgmodel.Row) bool { return r.Path.V == "bad/allow" }})
		var rows []pipeline.Row
		for i := range 4 {
			more := map[string]any{}
			if i == 0 {
				more["path"] = "bad/allow"
			}
			raw := event(fmt.Sprint("id-old-", i), time.Now(), more)
			read, refusal := decision.Decode([]byte(raw), 1<<20)
			if refusal != nil {
				t.Fatal(refusal)
			}
			rows = append(rows, pipeline.Row{Log: &read.Parts[0].Log, Topic: "decision-logs", Partition: 1, Offset: int64(i)})
		}
		if _, err := db.Store(t.Context(), rows, false); err == nil {
			t.Fatal("the batch is to be refused")
		}
		time.Sleep(72 * time.Hour)
		today := time.Now()
		c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil)), sourceRecord(2, event("id-2", time.Now(), nil))})
		same(t, c.homes, []string{"1 row", "2 row"})
		time.Sleep(time.Hour)
		server.Constrain(pgmodel.Constraint{Name: "wrong", Columns: []string{"ts"}, Refuses: func(r pgmodel.Row) bool { return !r.Time.Before(today.Add(-time.Minute)) }})
		var batch []*kgo.Record
		for i := range int64(5) {
			batch = append(batch, sourceRecord(3+i, event(fmt.Sprint("id-", 3+i), time.Now(), nil)))
		}
		c = carry(t, db, false, 1, batch)
		same(t, len(c.homes), 0)
		same(t, len(c.holds), 1)
	})
}

// The table takes nothing for hours. Then it is repaired, and its CHECK was tightened: it refuses all that a probe resembles.
// The decisions of the batch that holds speak for the table, however long it held.
func TestUsersCheck_TightenedInALongHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size  int
		homes []string
	}{
		"a bad one among good ones": {3, []string{"2 row", "3 dead_letter 23514", "4 row"}},
		"a good one alone":          {1, []string{"2 row"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
				began := time.Now()
				server.Constrain(pgmodel.Constraint{Name: "tenant", Columns: []string{"xmin"}, Refuses: func(r pgmodel.Row) bool {
					held := time.Since(began)
					return held < 3*time.Hour || held < 6*time.Hour && !bytes.Contains(r.Raw, []byte(`"tenant"`))
				}})
				carried := carryProbing(t, db, false, 0, time.Minute, oneWithoutTenant(2)[:c.size])
				same(t, carried.homes, c.homes)
				if held := time.Since(began); held > 4*time.Hour {
					t.Errorf("it held for %v", held)
				}
			})
		})
	}
}

// The table takes nothing, and a statement takes long. The probe could ask for so many rows that its time is over. The hold says
// what the table refuses all the same.
func TestUsersCheck_SlowRefusal(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
		server.Constrain(pgmodel.Constraint{Name: "none", Columns: []string{"xmin"}, Refuses: func(pgmodel.Row) bool { return true }})
		server.Inject(pgmodel.Fault{Point: pgmodel.Insert, Count: -1, Delay: 350 * time.Millisecond})
		var batch []*kgo.Record
		for i := range int64(16) {
			batch = append(batch, sourceRecord(2+i, event(fmt.Sprint("id-", 2+i), time.Now(), nil)))
		}
		c := carry(t, db, false, 1, batch)
		if len(c.holds) != 1 || c.holds[0].Reason != pipeline.ReasonDatabaseRefuses {
			t.Errorf("holds %v", c.holds)
		}
	})
}

// The table takes nothing, and the connection is lost while a stored row is looked for. The hold says what the table refuses all the same.
func TestUsersCheck_LostLook(t *testing.T) {
	t.Parallel()
	for name, started := range map[string]bool{"the same process": false, "a new process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
				server.Constrain(pgmodel.Constraint{Name: "none", Columns: []string{"xmin"}, Refuses: func(pgmodel.Row) bool { return true }})
				server.Inject(pgmodel.Fault{Point: pgmodel.Seen, Count: -1, Cut: true})
				if started {
					db = openModel(t, server)
				}
				c := carry(t, db, false, 1, oneWithoutTenant(2))
				if len(c.holds) != 1 || c.holds[0].Reason != pipeline.ReasonDatabaseRefuses {
					t.Errorf("holds %v", c.holds)
				}
			})
		})
	}
}

// A CHECK was tightened, and no stored row can be looked for in time. The good decisions of the batch speak for the table all the same.
func TestUsersCheck_LostLookAfterOffers(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
		needsTenant(server)
		server.Inject(pgmodel.Fault{Point: pgmodel.Seen, Count: -1, Cut: true})
		c := carry(t, db, false, 1, oneWithoutTenant(2))
		same(t, c.homes, []string{"2 row", "3 dead_letter 23514", "4 row"})
		same(t, len(c.holds), 0)
	})
}
