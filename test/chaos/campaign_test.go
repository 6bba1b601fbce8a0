//go:build integration

package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/rs/zerolog/log"
	"go.uber.org/goleak"

	"docket/internal/audit/conservation"
	"docket/internal/testkit/testenv"
)

var (
	flagDuration = flag.Duration("chaos.duration", shortCampaign, "length of the load")
	flagSeed     = flag.Uint64("chaos.seed", 1, "of the plan and of the records")
	flagRate     = flag.Int("chaos.rate", 120, "Kafka records produced a second")
	flagOut      = flag.String("chaos.out", "", "file for the closing table as Markdown")
	flagDir      = flag.String("chaos.dir", "", "folder for logs and disks; a new one in the folder for temporary files where empty")
	flagOnly     = flag.String("chaos.only", "", "faults whose name contains one of these, by comma, instead of all")
	flagStandby  = flag.Bool("chaos.standby", false, "Postgres has a synchronous standby, which is promoted now and then")
	flagLanes    = flag.Bool("chaos.lanes", false, "the programs have lanes, and limits that Redis counts")
	flagBin      = flag.String("chaos.bin", "", "folder with the three programs, built otherwise; built here where empty")
	flagSpoil    = flag.String("chaos.spoil", "", "break this half-way, to see that the campaign finds it: row")
)

func TestMain(m *testing.M) {
	log.Logger = zerolog.Nop() // some toxics speak through the global one
	// The proxies leave behind what hangs in a toxic when its connection ends, and who would take that toxic out. testenv.Main
	// does not return.
	testenv.Main(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).InterruptToxic"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicCollection).AddToxicJson"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicCollection).ResetToxics"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"))
}

// TestCampaign lets real programs on real parts run through faults by a seed and accounts for every decision.
func TestCampaign(t *testing.T) { //nolint:paralleltest // three brokers are enough for a machine
	c := newCampaign(t, size{seed: *flagSeed, length: *flagDuration, rate: *flagRate, standby: *flagStandby, lanes: *flagLanes})
	c.plan = Plan(c.seed, c.length, c.kinds())
	c.run(t.Context())
	c.report(t)
}

// TestCampaign_Standby has the faults of a standby that nothing else in the tests has, each time the same and without
// others beside them.
func TestCampaign_Standby(t *testing.T) { //nolint:paralleltest // three brokers are enough for a machine
	c := newCampaign(t, size{seed: 1, length: 30 * time.Second, rate: 60, standby: true, patience: time.Minute})
	c.plan = []Fault{
		{Kind: LinkDark, Start: time.Second, Length: 5 * time.Second},
		{Kind: WaitsCanceled, Start: 7 * time.Second, Length: 5 * time.Second},
		{Kind: PromotedAfterCancels, Start: 14 * time.Second, Length: 12 * time.Second},
	}
	c.run(t.Context())
	c.eachDone()
	c.report(t)
}

// TestCampaign_Lanes has three lanes and a Redis that goes away. No process kills itself, so that each fault has its
// effect on the lanes alone.
func TestCampaign_Lanes(t *testing.T) { //nolint:paralleltest // three brokers are enough for a machine
	c := newCampaign(t, size{seed: 2, length: 37 * time.Second, rate: 60, lanes: true, calm: true, patience: time.Minute})
	c.plan = []Fault{
		{Kind: LaneUnread, Target: urgentLane * Brokers, Start: time.Second, Length: 16 * time.Second},
		{Kind: RedisRefused, Start: 18 * time.Second, Length: 13 * time.Second},
		{Kind: RedisKilled, Start: 32 * time.Second, Length: 4 * time.Second},
		{Kind: ConsumerKilled, Start: 33 * time.Second, Length: time.Second},
	}
	c.run(t.Context())
	c.eachDone()
	c.separate(t.Context())
	c.report(t)
}

// eachDone finds a fault of the plan that was not done.
func (c *campaign) eachDone() {
	for _, f := range c.plan {
		if c.injected[f.Kind] != 1 {
			c.broken("the campaign", "%s was not done", f.Kind)
		}
	}
}

// size is how a campaign was asked for.
type size struct {
	seed    uint64        // of the plan and of the records
	length  time.Duration // of the load
	rate    int           // Kafka records a second
	standby bool
	lanes   bool
	calm    bool // no process kills itself

	patience time.Duration // at least so long is tried to do a fault that another is in the way of
}

// campaign is everything that a run has.
type campaign struct {
	size
	dir, bin string
	began    time.Time // of the load

	*journal
	cluster  *testenv.KafkaCluster
	postgres *testenv.PostgresServer // nil where there is a pair
	pair     *testenv.PostgresPair   // nil without a standby
	redis    *testenv.RedisServer    // nil without lanes
	wires    *wires
	disks    *disks
	database database
	places   conservation.Places
	ledger   *conservation.Produced
	load     *load
	slots    []*slot
	arms     *arms
	asks     asks
	resting  sync.WaitGroup // processes that killed themselves and come back
	plan     []Fault
	result   result

	promotions, canceled atomic.Int64 // of the standby, and waits for it
	decided              atomic.Int64 // commands of operators that were taken
	saidAway             atomic.Int64 // answers of a consumer that low lanes wait for Redis
}

func newCampaign(t *testing.T, of size) *campaign {
	t.Helper()
	c := &campaign{size: of, ledger: conservation.NewProduced(), arms: newArms(of.seed), dir: *flagDir, bin: *flagBin}
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "docket-chaos-") //nolint:usetesting // the logs stay when something was found
		check(t, err)
		c.dir = dir
	}
	if c.calm {
		c.arms.stop()
	}
	var err error
	c.journal, err = newJournal(c.dir)
	check(t, err)
	t.Cleanup(func() {
		c.journal.close()
		if !t.Failed() && *flagDir == "" {
			_ = os.RemoveAll(c.dir)
		}
	})
	c.say("seed %d, %v of load, %d records a second; logs in %s", c.seed, c.length, c.rate, c.dir)
	if c.bin == "" {
		c.bin = filepath.Join(c.dir, "bin")
		check(t, build(c.bin))
	}
	servers := 1
	if c.standby {
		servers = 2
	}
	c.disks = newDisks(c.dir, servers)
	t.Cleanup(c.disks.close)
	c.setUp(t)
	return c
}

func build(dir string) error {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-tags", "failpoints", "-o", dir+"/", "docket/cmd/consumer", "docket/cmd/parking-replayer", "docket/cmd/docket")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the programs: %w", err)
	}
	return nil
}

// kinds are the faults that this machine can do and that were asked for.
func (c *campaign) kinds() []Kind {
	kinds := Kinds(Parts{Disks: c.disks.mounted, Standby: c.standby, Lanes: c.lanes})
	if !c.disks.mounted {
		c.say("no disks of a limited size here (%v): full disks are left out", c.disks.why)
	}
	if *flagOnly == "" {
		return kinds
	}
	var chosen []Kind
	for _, k := range kinds {
		for word := range strings.SplitSeq(*flagOnly, ",") {
			if strings.Contains(strings.ToLower(k.Name), strings.ToLower(word)) {
				chosen = append(chosen, k)
				break
			}
		}
	}
	return chosen
}

// run is the campaign: load and faults side by side, then healing, settling and the account.
func (c *campaign) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.began = time.Now()
	watching, stopWatching := context.WithCancel(ctx)
	watchers := c.watch(watching)
	asking := make(chan struct{})
	go func() { defer close(asking); c.ask(watching) }()
	loading, stopLoading := context.WithCancel(ctx)
	pouring := c.load.start(loading)
	operating := make(chan struct{})
	go func() { defer close(operating); c.operate(loading) }()
	c.spoil(ctx)
	c.nemesis(ctx)
	wait(ctx, time.Until(c.began.Add(c.length)))
	stopLoading()
	c.arms.stop()
	c.healEverything(ctx)
	c.result.healed = time.Now()
	<-pouring
	<-operating
	c.endSchedule()
	check := c.load.finish(ctx)
	if check != nil {
		c.broken("the load", "%v", check)
	}
	c.settle(ctx)
	stopWatching()
	watchers.Wait()
	<-asking
	c.account(ctx)
}

func (c *campaign) close() {
	c.arms.stop()
	for _, s := range c.slots {
		s.end()
	}
	c.resting.Wait()
	if c.load != nil {
		c.load.close()
	}
	if c.wires != nil {
		c.wires.close()
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wait lets time go by; false where the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
