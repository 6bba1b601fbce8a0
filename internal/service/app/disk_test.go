package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/fallback"
	"docket/internal/record/home"
	"docket/internal/service/config"
	"docket/internal/testkit/fstest"
)

// refusing is a Kafka that takes nothing, and one that notes what it takes.
type refusing struct{}

func (refusing) Publish(_ context.Context, records []*kgo.Record) []error {
	errs := make([]error, len(records))
	for i := range errs {
		errs[i] = errors.New("not now")
	}
	return errs
}

type taking struct{ values map[string]bool }

func (k taking) Publish(_ context.Context, records []*kgo.Record) []error {
	for _, r := range records {
		k.values[string(r.Value)] = true
	}
	return make([]error, len(records))
}

// onePartition delivers a batch of records that no decoder takes, and looks at the disk when it is told to commit.
type onePartition struct {
	account *home.Account
	records []*kgo.Record
	leave   context.Context
	once    sync.Once
	onHold  func()
	commit  func()
}

func (p *onePartition) Topic() string            { return "decision-logs" }
func (p *onePartition) Partition() int32         { return 0 }
func (p *onePartition) Leaving() context.Context { return p.leave }
func (p *onePartition) Hold() func()             { p.once.Do(p.onHold); return func() {} }

func (p *onePartition) Commit(context.Context, home.Settled) error { p.commit(); return nil }

func (p *onePartition) Ready(context.Context) error { return nil }

func (p *onePartition) Fetch(context.Context) (*home.Batch, error) {
	if p.records == nil {
		return nil, pipeline.ErrDone
	}
	defer func() { p.records = nil }()
	p.account.Enter(p.records...)
	return p.account.Batch(p.records), nil
}

var badOnes = []string{"not json", "{", "also not"}

// spoolUnder carries a batch that only the spool can take, while the disk has a fault, and heals the disk once the
// batch is held. It says whether the fault struck.
func spoolUnder(t *testing.T, fault fstest.Fault) bool {
	t.Helper()
	m := fstest.New()
	o := Options{Instance: "test", Disk: m}
	s, err := openSpool(settings(t, config.Consumer), o, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	m.Fail(fault)
	var records []*kgo.Record
	for i, v := range badOnes {
		records = append(records, &kgo.Record{Topic: "decision-logs", Offset: int64(i), Value: []byte(v), Timestamp: time.Now()})
	}
	struck, held, commits := false, false, 0
	p := &onePartition{
		account: home.NewAccount("decision-logs", 0), records: records, leave: t.Context(),
		onHold: func() { held = true; struck = m.Reached(); m.Heal() },
		commit: func() {
			struck = struck || m.Reached()
			commits++
			m.Heal()
			for disk := range m.States() {
				durable(t, fmt.Sprintf("%+v", fault), disk)
			}
		},
	}
	cfg := pipeline.Config{DLQTopic: "dlq", ParkingTopic: "parking", ParkingDLQTopic: "parking-dlq", MaxRecordBytes: 1 << 20, ProbeInterval: time.Millisecond}
	w := setup(t, config.Consumer, Options{})
	pipe := pipeline.New(cfg, &fakeDB{}, refusing{}, s, w.program.observer, zerolog.Nop())
	if err := pipe.Run(t.Context(), p); err != nil {
		t.Error(err)
	}
	if commits != 1 {
		t.Errorf("%+v: %d commits", fault, commits)
	}
	failsAppend := fault.Op != fstest.OpRemove && fault.Op != fstest.OpAny
	if struck && failsAppend && !held {
		t.Errorf("%+v: committed although the disk failed", fault)
	}
	if err := s.spool.Close(); err != nil {
		t.Error(err)
	}
	return struck
}

// durable says that a disk, as it is found after a power cut, gives every record back.
func durable(t *testing.T, when string, disk *fstest.FS) {
	t.Helper()
	s, err := fallback.Open(fallback.Config{Dir: "spool", Instance: "again"}, disk, zerolog.Nop())
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer func() { _ = s.Close() }()
	got := taking{map[string]bool{}}
	for range 5 {
		if _, err := s.Recover(t.Context(), got); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	for _, v := range badOnes {
		if !got.values[v] {
			t.Errorf("%s: committed, and a power cut loses a record", when)
		}
	}
}

func TestSpool_CommitOnlyOverADurableFile(t *testing.T) {
	t.Parallel()
	for _, op := range []fstest.Op{fstest.OpCreate, fstest.OpWrite, fstest.OpSync, fstest.OpClose, fstest.OpRename, fstest.OpRemove, fstest.OpSyncDir, fstest.OpStat, fstest.OpAny} {
		for _, errno := range fstest.Errnos {
			for _, forever := range []bool{false, true} {
				for n := 1; spoolUnder(t, fstest.Fault{Op: op, N: n, Err: errno, Forever: forever}); n++ {
					if n > 100 || t.Failed() {
						t.Fatalf("%s %d %v", op, n, errno)
					}
				}
			}
		}
	}
}
