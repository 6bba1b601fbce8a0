package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
)

func storing() []Case {
	return []Case{
		{"rows are stored once", func(t *testing.T, s Server) {
			db := open(t, s)
			rows := []pipeline.Row{row("b", noon, `{"v":1}`), row("a", noon, `{"v":2}`), full("c", noon, 10)}
			same(t, save(t, db, rows...), []pipeline.Outcome{stored, stored, stored})
			same(t, save(t, db, rows...), []pipeline.Outcome{present, present, present})
			same(t, s.Count(t), 3)
		}},
		{"of doubles in a batch the earlier wins", func(t *testing.T, s Server) {
			db := open(t, s)
			out := save(t, db,
				row("z", noon, `{"n":1}`), row("a", noon, `{"n":2}`), row("z", noon, `{"n":3}`), row("z", noon, `{"n": 1}`),
				row("z", noon.Add(time.Microsecond), `{"n":3}`), row("a", noon.Add(999*time.Nanosecond), `{"n":2}`))
			same(t, out, []pipeline.Outcome{stored, stored, conflicting, present, stored, present})
			same(t, save(t, db, row("z", noon, `{"n":9}`), row("z", noon, `{"n":9}`), row("z", noon, `{"n":1}`)),
				[]pipeline.Outcome{conflicting, conflicting, present})
			same(t, s.Count(t), 3)
		}},
		{"outcomes come in the order of the rows", outcomesInOrder},
		{"times are kept to the microsecond", func(t *testing.T, s Server) {
			db := open(t, s)
			for i, at := range []time.Time{
				time.Date(2024, 1, 2, 3, 4, 5, 123456999, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
				time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", -23*3600)),
			} {
				id := fmt.Sprint(i)
				same(t, save(t, db, row(id, at, `{}`)), []pipeline.Outcome{stored})
				same(t, save(t, db, row(id, at.Truncate(time.Microsecond), `{}`)), []pipeline.Outcome{present})
				same(t, s.Raw(t, id, at), `{}`)
			}
		}},
		{"a large row", func(t *testing.T, s Server) {
			db := open(t, s, within(time.Minute))
			same(t, save(t, db, full("large", noon, 900<<10)), []pipeline.Outcome{stored})
			same(t, save(t, db, full("large", noon, 900<<10)), []pipeline.Outcome{present})
		}},
		{"many writers of the same rows do not deadlock", manyWriters},
		{"the probe passes and leaves nothing", func(t *testing.T, s Server) {
			db := open(t, s)
			for _, at := range []time.Time{noon, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
				if err := db.Probe(context.Background(), at); err != nil {
					t.Fatalf("%v: %v", at, err)
				}
			}
			same(t, s.Count(t), 0)
		}},
	}
}

func outcomesInOrder(t *testing.T, s Server) {
	db := open(t, s)
	var rows, before []pipeline.Row
	var want []pipeline.Outcome
	for i := range 100 {
		id := fmt.Sprintf("id-%03d", i)
		r := row(id, noon, fmt.Sprintf(`{"i":%d}`, i))
		rows = append(rows, r)
		switch i % 3 {
		case 0:
			want = append(want, stored)
		case 1:
			before, want = append(before, r), append(want, present)
		case 2:
			before, want = append(before, row(id, noon, `{"i":"other"}`)), append(want, conflicting)
		}
	}
	save(t, db, before...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(rows), func(i, j int) {
		rows[i], rows[j] = rows[j], rows[i]
		want[i], want[j] = want[j], want[i]
	})
	same(t, save(t, db, rows...), want)
}

func manyWriters(t *testing.T, s Server) {
	db := open(t, s, within(time.Minute))
	rows := make([]pipeline.Row, 100)
	for i := range rows {
		rows[i] = full(fmt.Sprintf("id-%d", i), noon, 10)
	}
	const writers = 4
	counts := make(chan int, writers)
	for w := range writers {
		go func() {
			mine := append([]pipeline.Row(nil), rows...)
			rand.New(rand.NewPCG(uint64(w), 7)).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			out, err := db.Store(context.Background(), mine, w%2 == 0)
			if err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
			n := 0
			for _, o := range out {
				if o == stored {
					n++
				}
			}
			counts <- n
		}()
	}
	sum := 0
	for range writers {
		sum += <-counts
	}
	same(t, []int{sum, s.Count(t)}, []int{len(rows), len(rows)})
}

// pairs are two texts and whether they are the same as jsonb.
var pairs = map[string]struct {
	was, is string
	want    pipeline.Outcome
}{
	"byte for byte":             {`{"a":1}`, `{"a":1}`, present},
	"key order":                 {`{"a":1,"b":{"x":1,"y":2}}`, `{"b":{"y":2,"x":1},"a":1}`, present},
	"white space":               {`{"a":[1,2]}`, "{ \"a\" :\n[1, 2] }", present},
	"1 and 1.0":                 {`{"a":1}`, `{"a":1.0}`, present},
	"1 and 1e0":                 {`{"a":1}`, `{"a":1e0}`, present},
	"100 and 1e2":               {`{"a":100}`, `{"a":1E+2}`, present},
	"0 and -0.0":                {`{"a":0}`, `{"a":-0.0}`, present},
	"0.001 and 1e-3":            {`{"a":0.0010}`, `{"a":1e-3}`, present},
	"escapes":                   {`{"a":"é/"}`, `{"a":"\u00e9\/"}`, present},
	"a pair of surrogates":      {`{"a":"😀"}`, `{"a":"\ud83d\ude00"}`, present},
	"the last of two keys":      {`{"a":1,"a":2}`, `{"a":2}`, present},
	"the first of two keys":     {`{"a":1,"a":2}`, `{"a":1}`, conflicting},
	"keys escaped":              {`{"\u0061":1}`, `{"a":1}`, present},
	"another value":             {`{"a":1}`, `{"a":2}`, conflicting},
	"a sign":                    {`{"a":1}`, `{"a":-1}`, conflicting},
	"number and string":         {`{"a":1}`, `{"a":"1"}`, conflicting},
	"array order":               {`{"a":[1,2]}`, `{"a":[2,1]}`, conflicting},
	"nesting":                   {`{"a":[[1],2]}`, `{"a":[1,[2]]}`, conflicting},
	"empty array, empty object": {`{"a":[]}`, `{"a":{}}`, conflicting},
	"null and absent":           {`{"a":1,"b":null}`, `{"a":1}`, conflicting},
	"null and false":            {`{"a":null}`, `{"a":false}`, conflicting},
	"one key more":              {`{"a":1}`, `{"a":1,"b":1}`, conflicting},
	"case of keys":              {`{"a":1}`, `{"A":1}`, conflicting},
	"blanks inside a string":    {`{"a":"x y"}`, `{"a":"xy"}`, conflicting},
	"digits beyond double":      {`{"a":9007199254740993}`, `{"a":9007199254740992}`, conflicting},
	"digits beyond double, too": {`{"a":0.1000000000000000000001}`, `{"a":0.1}`, conflicting},
	"a magnitude":               {`{"a":12}`, `{"a":120}`, conflicting},
}

func comparing() []Case {
	return []Case{{"what is there is compared as JSON", func(t *testing.T, s Server) {
		db := open(t, s)
		for name, c := range pairs {
			save(t, db, row(name, noon, c.was))
			if got := save(t, db, row(name, noon, c.is)); got[0] != c.want {
				t.Errorf("%s: outcome %d, want %d", name, got[0], c.want)
			}
			// Inside one batch it is the same.
			if got := save(t, db, row(name+" in", noon, c.was), row(name+" in", noon, c.is)); got[0] != stored || got[1] != c.want {
				t.Errorf("%s inside a batch: outcomes %d, want %d", name, got, c.want)
			}
		}
	}}}
}
