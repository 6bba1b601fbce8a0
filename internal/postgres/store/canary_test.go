package store_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgmodel"
)

// onlyShop is a CHECK of a user's that every decision meets which this table is for.
func onlyShop(server *pgmodel.Server) {
	server.Constrain(pgmodel.Constraint{Name: "ours", Columns: []string{"service", "source_topic", "decision_id"}, Refuses: func(r pgmodel.Row) bool {
		return r.Service.V != "shop" || r.Topic != "decision-logs" || !strings.HasPrefix(r.DecisionID, "id-")
	}})
}

// One bad decision among good ones is found, in a process that stored before and in one that was just started.
func TestUsersCheck_BadRecord(t *testing.T) {
	t.Parallel()
	for name, started := range map[string]bool{"the same process": false, "a new process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				onlyShop(server)
				c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", time.Now(), nil))})
				same(t, c.homes, []string{"1 row"})
				if started {
					db = openModel(t, server)
				}
				c = carry(t, db, false, 1, []*kgo.Record{
					sourceRecord(2, event("id-b", time.Now(), nil)), sourceRecord(3, event("id-c", time.Now(), map[string]any{"path": "other/allow"}))})
				same(t, c.homes, []string{"2 row", "3 dead_letter 23514"})
				same(t, len(c.holds), 0)
				same(t, len(server.Rows()), 2)
				if started {
					db = openModel(t, server)
				}
				c = carry(t, db, false, 1, []*kgo.Record{sourceRecord(4, event("id-d", time.Now(), map[string]any{"path": "other/allow"}))})
				same(t, c.homes, []string{"4 dead_letter 23514"}) // alone, so that only a stored row speaks for the table
			})
		})
	}
}

// An outage ends, and the partition proceeds by itself.
func TestUsersCheck_Outage(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		onlyShop(server)
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", time.Now(), nil))})
		heal := server.Inject(pgmodel.Fault{Point: pgmodel.Insert, SQLSTATE: "57P03", Count: -1})
		time.AfterFunc(5*time.Second, heal)
		var batches [][]*kgo.Record
		for i := range int64(6) {
			batches = append(batches, []*kgo.Record{sourceRecord(2+i, event("id-"+string(rune('b'+i)), time.Now(), nil))})
		}
		c := carry(t, db, false, 20, batches...)
		if c.commit != 8 || len(c.holds) == 0 {
			t.Errorf("commit %d, homes %v, holds %v", c.commit, c.homes, c.holds)
		}
	})
}

// A CHECK that was tightened refuses what a probe resembles: the row that is made up speaks for the table then.
func TestUsersCheck_Tightened(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", time.Now(), nil))})
		server.Constrain(pgmodel.Constraint{Name: "no_shop", Columns: []string{"service"}, Refuses: func(r pgmodel.Row) bool { return r.Service.V == "shop" }})
		c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(2, event("id-b", time.Now(), nil))})
		same(t, c.homes, []string{"2 dead_letter 23514"})
	})
}

// needsTenant adds a CHECK of the owner's: from now on each decision has a tenant. Earlier rows stay, and so the decision that
// a probe resembles has none. Neither has the row that is made up.
func needsTenant(server *pgmodel.Server) {
	server.Constrain(pgmodel.Constraint{Name: "tenant", Columns: []string{"raw"}, Refuses: func(r pgmodel.Row) bool {
		return !bytes.Contains(r.Raw, []byte(`"tenant"`))
	}})
}

// oneWithoutTenant has three decisions from this offset on. The one in the middle has no tenant.
func oneWithoutTenant(offset int64) (batch []*kgo.Record) {
	for i := range int64(3) {
		more := map[string]any{"tenant": "acme"}
		if i == 1 {
			more = nil
		}
		batch = append(batch, sourceRecord(offset+i, event(fmt.Sprint("id-", offset+i), time.Now(), more)))
	}
	return batch
}

// A CHECK that was tightened refuses all that a probe resembles. The good decisions of the refused batch speak for the table,
// and only the bad one is dead-lettered.
func TestUsersCheck_TightenedForEveryProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ started, newer bool }{
		"the same process":              {},
		"a new process":                 {started: true},
		"a new process, and newer rows": {started: true, newer: true}, // it reads any row of the day
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
				needsTenant(server)
				if c.newer {
					time.Sleep(time.Minute)
					carry(t, db, false, 1, []*kgo.Record{sourceRecord(2, event("id-2", time.Now(), map[string]any{"tenant": "acme"}))})
				}
				if c.started {
					db = openModel(t, server)
				}
				carried := carry(t, db, false, 1, oneWithoutTenant(7))
				same(t, carried.homes, []string{"7 row", "8 dead_letter 23514", "9 row"})
				same(t, len(carried.holds), 0)
			})
		})
	}
}

// An earlier batch of the partition was larger, and the table refuses its decisions by now. They do not speak for the next one.
func TestUsersCheck_TightenedBetweenBatches(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.Constrain(pgmodel.Constraint{Name: "path", Columns: []string{"path"}, Refuses: func(r pgmodel.Row) bool { return r.Path.V == "bad/allow" }})
		batch := []*kgo.Record{sourceRecord(0, event("id-bad", time.Now(), map[string]any{"path": "bad/allow"}))}
		for i := range int64(20) {
			batch = append(batch, sourceRecord(1+i, event(fmt.Sprint("id-", 1+i), time.Now(), nil)))
		}
		same(t, carry(t, db, false, 1, batch).homes[:2], []string{"0 dead_letter 23514", "1 row"})
		needsTenant(server)
		c := carry(t, db, false, 1, oneWithoutTenant(21))
		same(t, c.homes, []string{"21 row", "22 dead_letter 23514", "23 row"})
	})
}

// A CHECK was tightened, and the batch has a bad decision alone. A decision that another process stored a moment ago speaks for the
// table.
func TestUsersCheck_TightenedForOneRecord(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
		time.Sleep(time.Hour)
		needsTenant(server)
		carry(t, openModel(t, server), false, 1, []*kgo.Record{sourceRecord(2, event("id-2", time.Now(), map[string]any{"tenant": "acme"}))})
		c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(3, event("id-3", time.Now(), nil))})
		same(t, c.homes, []string{"3 dead_letter 23514"})
	})
}

// A CHECK that was tightened and takes none of a batch is at fault.
func TestUsersCheck_TightenedTakesNothing(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-1", time.Now(), nil))})
		server.Constrain(pgmodel.Constraint{Name: "none", Columns: []string{"xmin"}, Refuses: func(pgmodel.Row) bool { return true }})
		c := carry(t, db, false, 1, oneWithoutTenant(2))
		same(t, len(c.homes)+len(c.sent), 0)
		same(t, len(c.holds), 1)
	})
}

// A CHECK on the time, and one decision from an OPA whose clock is wrong.
func TestUsersCheck_OddTime(t *testing.T) {
	t.Parallel()
	for name, replay := range map[string]bool{"consumer": false, "replayer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				server.Constrain(pgmodel.Constraint{Name: "plausible", Columns: []string{"ts"}, Refuses: func(r pgmodel.Row) bool { return r.Time.Year() < 1999 }})
				record := sourceRecord(4, event("id-old", time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), nil))
				if replay {
					record = parkedRecord(4, 0, string(record.Value))
				}
				c := carry(t, db, replay, 1, []*kgo.Record{record})
				same(t, c.homes, []string{"4 dead_letter 23514"})
			})
		})
	}
}

// A table of the past takes no row of the present: the stored decision's own time speaks for it.
func TestUsersCheck_TableOfThePast(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		past := time.Now().AddDate(-1, 0, 0)
		server.Constrain(pgmodel.Constraint{Name: "past", Columns: []string{"ts"}, Refuses: func(r pgmodel.Row) bool { return !r.Time.Equal(past) }})
		carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", past, nil))})
		c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(2, event("id-b", time.Now(), nil))})
		same(t, c.homes, []string{"2 dead_letter 23514"})
		synctest.Wait()
	})
}

// Stored decisions come again after a CHECK was tightened: they are duplicates, foreseen or not, by COPY or by INSERT.
func TestUsersCheck_StoredBefore(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][]string{"foreseen": {"decision_id"}, "not foreseen": {"xmin"}} {
		for way, copies := range map[string]bool{"by COPY": true, "by INSERT": false} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
					if !copies {
						server.RefuseCopy()
					}
					var records []*kgo.Record
					for i, id := range []string{"id-a", "id-b", "id-new", "id-c", "id-other", "id-d"} {
						records = append(records, sourceRecord(int64(i), event(id, midday, nil)))
					}
					carry(t, db, false, 1, []*kgo.Record{records[0], records[1]})
					server.Constrain(pgmodel.Constraint{Name: "tightened", Columns: columns, Refuses: func(r pgmodel.Row) bool {
						return r.DecisionID == "id-a" || r.DecisionID == "id-b" || r.DecisionID == "id-new"
					}})
					c := carry(t, openModel(t, server), false, 1, records)
					same(t, c.homes, []string{"0 duplicate", "1 duplicate", "2 dead_letter 23514", "3 row", "4 row", "5 row"})
				})
			})
		}
	}
}

// A trigger swallows a row, or alters its identity: that record is found, and its neighbours are stored.
func TestUsersTrigger(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*pgmodel.Row) bool{
		"swallows": func(r *pgmodel.Row) bool { return r.Path.V != "health/check" },
		"alters the identity": func(r *pgmodel.Row) bool {
			r.Time = r.Time.Truncate(time.Second)
			return true
		},
	} {
		for program, replay := range map[string]bool{"consumer": false, "replayer": true} {
			t.Run(name+" "+program, func(t *testing.T) {
				t.Parallel()
				inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
					whole := midday.Truncate(time.Second)
					odd := event("id-odd", whole, map[string]any{"path": "health/check"})
					if name != "swallows" {
						odd = event("id-odd", whole.Add(time.Millisecond), nil)
						carry(t, db, false, 1, []*kgo.Record{sourceRecord(2, odd)}) // from here on its row is there, and not found
					}
					server.Alter(alter)
					if name != "swallows" {
						carry(t, db, false, 1, []*kgo.Record{sourceRecord(9, event("id-odd", whole, nil))})
						server.Delete("id-odd", whole.Add(time.Millisecond))
					}
					records := []*kgo.Record{sourceRecord(1, event("id-a", whole, nil)), sourceRecord(2, odd), sourceRecord(3, event("id-b", whole, nil))}
					if replay {
						for i, r := range records {
							records[i] = parkedRecord(r.Offset, 4, string(r.Value))
						}
					}
					c := carry(t, db, replay, 1, records)
					same(t, c.homes, []string{"1 row", "2 dead_letter internal", "3 row"})
				})
			})
		}
	}
}

// A trigger deletes a row after it is stored: that record is found, and its neighbours keep their rows.
func TestUsersTrigger_Deletes(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{true, false} {
		t.Run(fmt.Sprintf("copies %t", copies), func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				if !copies {
					server.RefuseCopy()
				}
				drop := server.Remove(func(r pgmodel.Row) bool { return r.Path.V == "health/check" })
				records := []*kgo.Record{
					sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-odd", midday, map[string]any{"path": "health/check"})),
					sourceRecord(3, event("id-b", midday, nil)),
				}
				same(t, carry(t, db, false, 1, records).homes, []string{"1 row", "2 dead_letter internal", "3 row"})
				drop()
				same(t, carry(t, db, false, 1, records).homes, []string{"1 duplicate", "2 row", "3 duplicate"})
			})
		})
	}
}

// A table that keeps no row is at fault, and no record is.
func TestUsersTrigger_DeletesAll(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.Remove(func(pgmodel.Row) bool { return true })
		c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, nil))})
		if len(c.homes)+len(c.sent) > 0 || c.commit != -1 || len(c.holds) != 1 || c.holds[0].Code != errclass.CodeConfig {
			t.Errorf("homes %v, sent %d, committed %d, held %+v", c.homes, len(c.sent), c.commit, c.holds)
		}
	})
}

// Of two decisions of one identity the second has no outcome where a trigger alters the identity of the first.
func TestUsersTrigger_Doubles(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.Alter(func(r *pgmodel.Row) bool {
			r.Time = r.Time.Truncate(time.Second)
			return true
		})
		r := pipeline.Row{Topic: "t", Log: logAt("a", midday)}
		out, err := db.Store(t.Context(), []pipeline.Row{r, r}, false)
		if err == nil || errclass.Classify(err).Code != errclass.CodeSwallowed {
			t.Errorf("outcomes %v: %v", out, err)
		}
	})
}

// A payload that a trigger masks, or that somebody erased, comes again: as Kafka delivers it a second time, as OPA sends it a
// second time, and as a parked copy. It is a duplicate, so it comes into no dead-letter topic.
func TestUsersTrigger_Masks(t *testing.T) {
	t.Parallel()
	masked := []byte(`{"decision_id":"id-a"}`)
	for name, mask := range map[string]func(*pgmodel.Server){
		"masked": func(s *pgmodel.Server) {
			s.Alter(func(r *pgmodel.Row) bool {
				r.Raw = masked
				return true
			})
		},
		"erased": func(s *pgmodel.Server) {
			for _, r := range s.Rows() {
				r.Raw = masked
				s.Put(r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				if name == "masked" {
					mask(server)
				}
				came := event("id-a", midday, map[string]any{"input": "secret"})
				carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, came)})
				if name == "erased" {
					mask(server)
				}
				for what, r := range map[string]*kgo.Record{
					"1 duplicate": sourceRecord(1, came), "2 duplicate": sourceRecord(2, came), "7 duplicate": parkedRecord(7, 0, came),
				} {
					c := carry(t, openModel(t, server), r.Topic != "decision-logs", 1, []*kgo.Record{r})
					same(t, c.homes, []string{what})
					same(t, len(c.sent), 0)
				}
				other := carry(t, openModel(t, server), false, 1, []*kgo.Record{sourceRecord(3, event("id-a", midday, map[string]any{"input": "other"}))})
				same(t, other.homes, []string{"3 dead_letter id_conflict"})
			})
		})
	}
}

// An empty table whose owner's constraint does not like the row that is made up, as a foreign key: the good decisions of the
// first batch speak for it, and only the bad one is dead-lettered.
func TestUsersCheck_EmptyTable(t *testing.T) {
	t.Parallel()
	for way, copies := range map[string]bool{"by COPY": true, "by INSERT": false} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				if !copies {
					server.RefuseCopy()
				}
				server.Constrain(pgmodel.Constraint{Name: "known", Columns: []string{"xmin"}, Refuses: func(r pgmodel.Row) bool {
					return r.Path.V == "docket/probe" || r.DecisionID == "id-bad"
				}})
				c := carry(t, db, false, 1, []*kgo.Record{
					sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-bad", midday, nil)), sourceRecord(3, event("id-b", midday, nil)),
				})
				same(t, c.homes, []string{"1 row", "2 dead_letter 23514", "3 row"})
			})
		})
	}
}

// An empty table that takes none of a batch is at fault.
func TestUsersCheck_EmptyTableTakesNothing(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.Constrain(pgmodel.Constraint{Name: "none", Columns: []string{"xmin"}, Refuses: func(pgmodel.Row) bool { return true }})
		c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, nil))})
		same(t, len(c.homes)+len(c.sent), 0)
		same(t, len(c.holds), 1)
	})
}

// The store remembers the good decisions that speak for an empty table. Decisions of another partition, a part of their own
// batch, and many waiting partitions do not replace them.
func TestUsersCheck_EmptyTableRemembers(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.Constrain(pgmodel.Constraint{Name: "known", Columns: []string{"xmin"}, Refuses: func(r pgmodel.Row) bool { return r.Path.V != "good/allow" }})
		batch := func(partition int32, ids ...string) (rows []pipeline.Row) {
			for _, id := range ids {
				path := map[bool]string{true: "good/allow", false: "bad/allow"}[id == "id-a"]
				log := &decision.Log{ID: id, Time: midday, Raw: []byte(event(id, midday, map[string]any{"path": path}))}
				rows = append(rows, pipeline.Row{Topic: "t", Partition: partition, Log: log})
			}
			return rows
		}
		fails := func(rows []pipeline.Row) {
			t.Helper()
			if _, err := db.Store(t.Context(), rows, false); err == nil {
				t.Fatal("it was stored")
			}
		}
		fails(batch(0, "id-a", "id-b", "id-c"))
		fails(batch(0, "id-b", "id-c"))
		for partition := range int32(40) {
			fails(batch(1+partition, "id-d", "id-e"))
		}
		passed := func() bool { return db.Probe(t.Context(), time.Time{}) == nil }
		for try := 1; !passed(); try++ {
			if try == 20 {
				t.Fatal("no probe passes")
			}
		}
		fails(batch(0, "id-d", "id-e", "id-f", "id-g"))
		for range 3 {
			if !passed() {
				t.Fatal("a decision that was taken is forgotten")
			}
		}
	})
}
