//go:build integration

package sqlstates

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/errclass"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/pgtest"
)

type kgoRecord = kgo.Record

// workers is the number of codes that are tested at once, each in its own database.
const workers = 4

// outcome is a line of the table.
type outcome struct {
	code, one, all string
	took           time.Duration
}

// serverCodes returns the codes that the server's version knows.
func serverCodes(t *testing.T, pg *pgtest.DB) []string {
	t.Helper()
	var text string
	pg.Query(t, `SELECT pg_read_file(setting || '/errcodes.txt') FROM pg_config WHERE name = 'SHAREDIR'`, &text)
	var codes []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 3 && len(f[0]) == 5 && !strings.HasPrefix(line, "#") {
			codes = append(codes, f[0])
		}
	}
	if len(codes) < 250 {
		t.Fatalf("the server's list has %d codes", len(codes))
	}
	return codes
}

// codes returns all raised codes: the table's, the server's, and some unknown ones.
func codes(t *testing.T, pg *pgtest.DB) []string {
	t.Helper()
	all := serverCodes(t, pg)
	for _, v := range errclass.Table() {
		if len(v.Code) == 5 && strings.ToUpper(v.Code) == v.Code {
			all = append(all, v.Code)
		}
	}
	all = append(all, "57P06", "22999", "53500", "58P03", "AB123", "ZZZZZ")
	slices.Sort(all)
	return slices.Compact(all)
}

func TestSQLSTATE_EachLeadsToItsHome(t *testing.T) {
	t.Parallel()
	list := codes(t, pgtest.New(t))
	var mu sync.Mutex
	var seen []outcome
	var wg sync.WaitGroup
	for n := range workers { //nolint:paralleltest // the workers are what runs beside each other
		var mine []string
		for i := n; i < len(list); i += workers {
			mine = append(mine, list[i])
		}
		pg := pgtest.New(t)
		as := role(t, pg)
		var prefixes []string
		for _, code := range mine {
			prefixes = append(prefixes, "one-"+code+"-", "all-"+code+"-")
		}
		k := cluster(t, prefixes...)
		wg.Go(func() {
			for _, code := range mine {
				t.Run(code, func(t *testing.T) {
					o := raise(t, k, pg, as, code)
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, o)
				})
			}
		})
	}
	wg.Wait()
	report(t, seen)
}

// raise raises one code on one record and on all.
func raise(t *testing.T, k *kafkatest.Cluster, pg *pgtest.DB, as, code string) outcome {
	began := time.Now()
	o, want := outcome{code: code}, expect(code)
	pg.Calm(t)
	pg.RaiseMarked(t)
	one := newWorld(t, k, pg, as, "one-"+code+"-")
	o.one = one.one(want, logOf(one.prefix+"odd", noon, `"raise":"`+code+`","raise_constraint":"planted"`))
	pg.RaiseAll(t, pgtest.Fault{Code: code, Constraint: "planted"})
	o.all = newWorld(t, k, pg, as, "all-"+code+"-").all(want, func() { pg.Calm(t) })
	o.took = time.Since(began)
	return o
}

// report writes the table of results.
func report(t *testing.T, seen []outcome) {
	t.Helper()
	slices.SortFunc(seen, func(a, b outcome) int { return strings.Compare(a.code, b.code) })
	totals := map[string]int{}
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %-10s %-20s %-38s %-18s %s\n", "code", "class", "treatment", "one record of eight", "all records", "took")
	for _, o := range seen {
		v := treatmentOf(o.code)
		fmt.Fprintf(&b, "%-6s %-10s %-20s %-38s %-18s %.2fs\n", o.code, v.class(), v, o.one, o.all, o.took.Seconds())
		totals["class "+v.class().String()]++
		totals["one record: "+o.one]++
		totals["all records: hold for "+o.all]++
	}
	fmt.Fprintf(&b, "\n%d codes\n", len(seen))
	for _, what := range slices.Sorted(maps.Keys(totals)) {
		fmt.Fprintf(&b, "%5d  %s\n", totals[what], what)
	}
	t.Log(len(seen), "codes were raised on one record and on all")
	if *tableTo == "" {
		return
	}
	if err := os.WriteFile(*tableTo, []byte(b.String()), 0o600); err != nil {
		t.Error(err)
	}
}
