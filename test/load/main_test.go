//go:build integration

package load

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/internal/testkit/testenv"
)

var (
	whole = flag.Bool("load.whole", false, "play the scenarios at full length and judge times and rates too; else a short trial")
	only  = flag.String("load.only", "", "numbers of the scenarios, by comma; empty: all")
	out   = flag.String("load.out", "", "file for the page")
)

// bin is where TestMain put the programs.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-load-")
	if err == nil {
		bin = dir
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir, "docket/cmd/docket")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "load: build the program: %v\n", err)
		os.Exit(1)
	}
	// testenv.Main does not return. The folder holds only the program; the system clears its temporary files.
	// The proxies leave behind what hangs in a toxic when its connection ends.
	testenv.Main(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).InterruptToxic"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicCollection).AddToxicJson"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"))
}

// scenario is one kind of load. Its number is that of the design document that the scenarios come from.
type scenario struct {
	number int
	name   string
	play   func(y *system) []Bound
}

// scenarios are all, in the order of their numbers.
func scenarios() []scenario {
	return []scenario{
		{1, "urgent 50/s and default 200/s: look-ups by id", lookups},
		{2, "urgent 200/s and default 300/s, limit 450/350", limited},
		{3, "a thousand questions for one archived day", herd},
		{4, "a worker is killed", killed},
		{5, "the database is slow for 10 s", slowDatabase},
		{6, "the same answer 100,000 times", sameAnswer},
		{7, "a warm-up holds, a person asks", upgraded},
		{8, "the low bucket is empty: the urgent lane does not feel it", emptyLow},
		{9, "Kafka answers the desk a second late", lateKafka},
		{10, "Redis is gone", redisGone},
		{11, "the low lane alone, limit 450/350", lowAlone},
		{12, "ten processes claim the same work at once", tenAtOnce},
		{13, "versions of claims", risingVersions},
		{14, "the limit on a cluster of three Redis nodes", clustered},
		{15, "ten processes end the same claim at once", oneEndWins},
		{16, "1,000,000 decisions wait in the default lane", backlog},
	}
}

// TestLoad plays the scenarios one after another, so that none disturbs another. Without flags it is a trial: short, and
// judged by what does not depend on time.
func TestLoad(t *testing.T) { //nolint:paralleltest // nothing may run beside a measurement
	wanted := map[int]bool{}
	for text := range strings.SplitSeq(*only, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.number == n }) {
			t.Fatalf("-load.only has %q, which is no scenario", text)
		}
		wanted[n] = true
	}
	stand := newStand(t)
	var results []Result
	for _, s := range scenarios() { //nolint:paralleltest // nothing may run beside a measurement
		if len(wanted) > 0 && !wanted[s.number] {
			continue
		}
		began := time.Now()
		r := Result{Number: s.number, Name: s.name}
		r.Err = fmt.Errorf("scenario %d was not played to its end", s.number)
		t.Run(strconv.Itoa(s.number), func(t *testing.T) {
			r.Bounds = s.play(stand.system(t))
			r.Err = nil
			for _, b := range r.Bounds {
				if !b.Kept() && (*whole || !b.Timed) {
					t.Errorf("%s: measured %.4g, bound: %s", b.What, b.Measured, b.Limits())
				}
			}
		})
		r.Took = time.Since(began)
		results = append(results, r)
	}
	var page strings.Builder
	Table(&page, results)
	fmt.Print(page.String())
	if *out != "" {
		if err := os.WriteFile(*out, []byte(page.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// length is how long a part of a scenario takes: all of d, or a trial.
func length(d time.Duration) time.Duration {
	if *whole {
		return d
	}
	return min(d, 4*time.Second)
}
