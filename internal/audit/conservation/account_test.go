package conservation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

const topic = "decision-logs"

// world has the produced records, and the evidence that a perfect Docket would leave.
type world struct {
	ledger *Produced
	ev     Evidence
}

// perfect has every decision in its home, spread over three partitions.
func perfect(t *testing.T) world {
	t.Helper()
	w := world{ledger: NewProduced(), ev: Evidence{AllRows: true, Committed: verify.Offsets{}}}
	stored := make(map[verify.Identity][]byte)
	for i, r := range generate(t, testConfig()) {
		partition, offset := int32(i%3), int64(i/3)
		w.ledger.Acknowledged(topic, partition, offset, r)
		w.ev.Committed[verify.Partition{Topic: topic, Number: partition}] = offset + 1
		for j, d := range r.Decisions {
			at := Place{Topic: topic, Partition: partition, Offset: offset, Index: j}
			if d.Code != "" {
				w.ev.Forwarded = append(w.ev.Forwarded, forwarded(&r, at, home.DeadLetter, d.Code))
				continue
			}
			id := verify.Identity{ID: d.ID, Time: d.Time}
			body, known := stored[id]
			switch {
			case !known:
				stored[id] = d.Body
				w.ev.Rows = append(w.ev.Rows, Row{Place: at, ID: d.ID, Time: d.Time})
			case string(body) != string(d.Body):
				w.ev.Forwarded = append(w.ev.Forwarded, forwarded(&r, at, home.DeadLetter, codeConflict))
			}
		}
	}
	return w
}

func forwarded(r *Record, at Place, h home.Home, code string) Forwarded {
	index := at.Index
	if r.Decisions[at.Index].ID == "" {
		index = envelope.NoIndex
	}
	source := &kgo.Record{Topic: at.Topic, Partition: at.Partition, Offset: at.Offset, Key: r.Key, Value: r.Value}
	return verify.ForwardedOf(envelope.Open(source).Seal(envelope.Cause{Code: code}, envelope.Sealed{
		Topic: "a topic", Index: index, Value: r.forwarded(at.Index), At: time.Unix(1, 0),
	}), h, "a topic")
}

// at returns the record of a row.
func (w *world) at(p Place) *Record {
	return w.ledger.records[Place{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}]
}

// row returns the index of a row without duplicates and conflicts, from a record of one decision.
func (w *world) row(t *testing.T) int {
	t.Helper()
	uses := make(map[verify.Identity]int)
	for _, r := range w.ledger.records {
		for _, d := range r.Decisions {
			uses[verify.Identity{ID: d.ID, Time: d.Time}]++
		}
	}
	i := slices.IndexFunc(w.ev.Rows, func(r Row) bool {
		return uses[verify.Identity{ID: r.ID, Time: r.Time}] == 1 && len(w.at(r.Place).Decisions) == 1
	})
	if i < 0 {
		t.Fatal("no such row")
	}
	return i
}

func (w *world) deadLetter(code string) int {
	return slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return f.Code == code })
}

func TestReconcile_PerfectWorld(t *testing.T) {
	t.Parallel()
	w := perfect(t)
	a := Reconcile(w.ledger, w.ev)
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	if a.Produced != w.ledger.Decisions() || a.Housed() != a.Produced || a.Homes[home.Row] != len(w.ev.Rows) {
		t.Errorf("produced %d, housed %d, rows %d of %d", a.Produced, a.Housed(), a.Homes[home.Row], len(w.ev.Rows))
	}
	for _, h := range []home.Home{home.Row, home.Duplicate, home.DeadLetter} {
		if a.Homes[h] == 0 {
			t.Errorf("nothing is accounted as %v", h)
		}
	}
	if len(a.Codes()) < 9 {
		t.Errorf("only these codes are planted: %v", a.Codes())
	}
}

func TestReconcile_FindsEveryFault(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil func(t *testing.T, w *world)
		where func(a *Account) []Finding
	}{
		"a lost row": {
			func(t *testing.T, w *world) { i := w.row(t); w.ev.Rows = slices.Delete(w.ev.Rows, i, i+1) },
			func(a *Account) []Finding { return a.Lost },
		},
		"a loss and a double that cancel out in number": {
			func(t *testing.T, w *world) { i := w.row(t); w.ev.Rows[i] = w.ev.Rows[len(w.ev.Rows)-1] },
			func(a *Account) []Finding { return a.Lost },
		},
		"two rows of one decision": {
			func(t *testing.T, w *world) { w.ev.Rows = append(w.ev.Rows, w.ev.Rows[w.row(t)]) },
			func(a *Account) []Finding { return a.Doubled },
		},
		"a lost dead letter": {
			func(_ *testing.T, w *world) {
				i := w.deadLetter(codeSyntax)
				w.ev.Forwarded = slices.Delete(w.ev.Forwarded, i, i+1)
			},
			func(a *Account) []Finding { return a.Lost },
		},
		"lost if committed without a home, else unread": {
			func(t *testing.T, w *world) {
				i := w.row(t)
				row := w.ev.Rows[i]
				w.ev.Committed[verify.Partition{Topic: topic, Number: row.Partition}] = row.Offset
				w.ev.Rows = slices.Delete(w.ev.Rows, i, i+1)
			},
			func(a *Account) []Finding { return a.Unread },
		},
		"a row and a dead letter": {
			func(t *testing.T, w *world) {
				at := w.ev.Rows[w.row(t)].Place
				w.ev.Forwarded = append(w.ev.Forwarded, forwarded(w.at(at), at, home.DeadLetter, codeCheck))
			},
			func(a *Account) []Finding { return a.Doubled },
		},
		"a row that nobody produced": {
			func(_ *testing.T, w *world) {
				w.ev.Rows = append(w.ev.Rows, Row{Place: Place{Topic: topic, Partition: 0, Offset: 1 << 40}, ID: "invented", Time: testConfig().Start})
			},
			func(a *Account) []Finding { return a.Invented },
		},
		"a dead letter with an index beyond its record": {
			func(_ *testing.T, w *world) { w.ev.Forwarded[w.deadLetter(codeMissingField)].Index = 99 },
			func(a *Account) []Finding { return a.Invented },
		},
		"a dead letter of several decisions without index": {
			func(_ *testing.T, w *world) {
				i := slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return len(w.at(f.Place).Decisions) > 1 })
				w.ev.Forwarded[i].Index = envelope.NoIndex
			},
			func(a *Account) []Finding { return a.Invented },
		},
		"a dead letter that does not say where it was read": {
			func(_ *testing.T, w *world) { w.ev.Forwarded[w.deadLetter(codeSyntax)].NoOrigin = true },
			func(a *Account) []Finding { return a.Invented },
		},
		"a good decision among the dead letters": {
			func(t *testing.T, w *world) {
				i := w.row(t)
				at := w.ev.Rows[i].Place
				w.ev.Rows = slices.Delete(w.ev.Rows, i, i+1)
				w.ev.Forwarded = append(w.ev.Forwarded, forwarded(w.at(at), at, home.DeadLetter, codeCheck))
			},
			func(a *Account) []Finding { return a.Misplaced },
		},
		"a good decision given up by the replayer": {
			func(t *testing.T, w *world) {
				i := w.row(t)
				at := w.ev.Rows[i].Place
				w.ev.Rows = slices.Delete(w.ev.Rows, i, i+1)
				w.ev.Forwarded = append(w.ev.Forwarded, forwarded(w.at(at), at, home.Exhausted, "network"))
			},
			func(a *Account) []Finding { return a.Misplaced },
		},
		"a dead letter of another code": {
			func(_ *testing.T, w *world) { w.ev.Forwarded[w.deadLetter(codeEmpty)].Code = codeSyntax },
			func(a *Account) []Finding { return a.Misplaced },
		},
		"a conflict that was stored over the first": {
			func(_ *testing.T, w *world) {
				i := w.deadLetter(codeConflict)
				w.ev.Forwarded = slices.Delete(w.ev.Forwarded, i, i+1)
			},
			func(a *Account) []Finding { return a.Lost },
		},
		"a parked record committed and stored nowhere": {
			func(t *testing.T, w *world) { w.park(t).Settled = true },
			func(a *Account) []Finding { return a.Lost },
		},
		"a changed payload": {
			func(t *testing.T, w *world) { w.ev.Unequal = []Place{w.ev.Rows[w.row(t)].Place} },
			func(a *Account) []Finding { return a.Altered },
		},
		"a row under another id": {
			func(t *testing.T, w *world) { w.ev.Rows[w.row(t)].ID = "another" },
			func(a *Account) []Finding { return a.Altered },
		},
		"null forwarded as empty": {
			func(_ *testing.T, w *world) {
				i := slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return f.Value == verify.SumOf(nil) })
				w.ev.Forwarded[i].Value = verify.SumOf([]byte{})
			},
			func(a *Account) []Finding { return a.Altered },
		},
		"a wrong dead-letter id": {
			func(_ *testing.T, w *world) { w.ev.Forwarded[0].WrongID = true },
			func(a *Account) []Finding { return a.Altered },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := perfect(t)
			c.spoil(t, &w)
			a := Reconcile(w.ledger, w.ev)
			if len(c.where(a)) != 1 {
				t.Errorf("found %v", c.where(a))
			}
			if a.Err() == nil {
				t.Error("the account adds up")
			} else if f := c.where(a); len(f) > 0 && !strings.Contains(a.Err().Error(), f[0].Place.String()) {
				t.Errorf("%v does not name %v", a.Err(), f[0].Place)
			}
		})
	}
}

// park moves a row to the parking topic and returns the parked record.
func (w *world) park(t *testing.T) *Forwarded {
	t.Helper()
	i := w.row(t)
	at := w.ev.Rows[i].Place
	w.ev.Rows = slices.Delete(w.ev.Rows, i, i+1)
	w.ev.Forwarded = append(w.ev.Forwarded, forwarded(w.at(at), at, home.Parked, "network"))
	return &w.ev.Forwarded[len(w.ev.Forwarded)-1]
}

func TestReconcile_ParkedOrSpooledIsAHome(t *testing.T) {
	t.Parallel()
	for _, h := range []home.Home{home.Parked, home.Spooled} {
		w := perfect(t)
		w.park(t).Home = h
		a := Reconcile(w.ledger, w.ev)
		if a.Err() != nil || a.Homes[h] != 1 {
			t.Errorf("%v: %v, %d there", h, a.Err(), a.Homes[h])
		}
	}
}

func TestReconcile_CopiesInOneHome(t *testing.T) {
	t.Parallel()
	w := perfect(t)
	w.ev.Forwarded = append(w.ev.Forwarded, w.ev.Forwarded...)
	if err := Reconcile(w.ledger, w.ev).Err(); err != nil {
		t.Error(err)
	}
}

func TestReconcile_FirstOfAConflictWins(t *testing.T) {
	t.Parallel()
	w := perfect(t)
	i := w.deadLetter(codeConflict)
	late := w.ev.Forwarded[i].Place
	d := w.at(late).Decisions[0]
	j := slices.IndexFunc(w.ev.Rows, func(r Row) bool { return r.ID == d.ID })
	early := w.ev.Rows[j].Place
	w.ev.Rows[j].Place = late
	w.ev.Forwarded[i] = forwarded(w.at(early), early, home.DeadLetter, codeConflict)
	if err := Reconcile(w.ledger, w.ev).Err(); err != nil {
		t.Error(err)
	}
}
