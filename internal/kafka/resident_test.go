//go:build !race

// The race detector needs several times the memory.

package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

const (
	brokersOf = "DOCKET_TEST_BROKERS"
	countOf   = "DOCKET_TEST_COUNT"
	lanesOf   = "DOCKET_TEST_LANES"

	softLimit = 140 << 20 // the consumer's soft limit with default settings
)

func init() { reader = readAndTell } //nolint:gochecknoinits // it is left out with the race detector

// readAndTell reads with default settings and prints the most memory that the process ever had. load says how it
// reads. With "hold" all partitions hold with their first batch. With "tries" they wait with it without a hold until
// all have one. With "read" it reads so many records. With "wait" it takes the allowed records and finishes none.
func readAndTell(load string) {
	debug.SetMemoryLimit(softLimit)
	count, _ := strconv.ParseInt(os.Getenv(countOf), 10, 64)
	ctx, stop := context.WithCancel(context.Background())
	var waiting, read atomic.Int64
	all, enough := make(chan struct{}), make(chan struct{})
	handle := func(ctx context.Context, a *kafka.Assignment) error {
		var waits []*kgo.Record
		for first := true; load == "wait"; first = false {
			taken, err := a.Take(ctx, 5000, 8<<20, 0)
			if err != nil {
				runtime.KeepAlive(waits)
				return err
			}
			waits = append(waits, taken...)
			read.Add(int64(len(taken)))
			if first && waiting.Add(1) == count {
				close(all)
			}
		}
		for first := true; ; first = false {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			if first && load != "read" {
				if load == "hold" {
					defer a.Hold()()
				}
				if waiting.Add(1) == count {
					close(all)
				}
				select {
				case <-all:
				case <-a.Leaving().Done():
					return ctx.Err()
				}
				if load == "hold" {
					<-a.Leaving().Done()
					return ctx.Err()
				}
			}
			n := int64(len(b.Records()))
			settled := settle(b)
			b.Release()
			if err := a.Commit(ctx, settled); err != nil {
				return err
			}
			if before := read.Add(n) - n; load == "read" && before < count && before+n >= count {
				close(enough)
			}
		}
	}
	cfg := kafka.Config{Brokers: strings.Split(os.Getenv(brokersOf), ",")}
	done := make(chan error, 3)
	var running int
	for _, sc := range sourcesOf(os.Getenv(lanesOf) != "") {
		source, err := kafka.NewSource(cfg, sc, zerolog.Nop(), nil)
		if err != nil {
			panic(err)
		}
		running++
		go func() { done <- source.Run(ctx, handle) }()
	}
	select {
	case <-all:
		for before := int64(-1); before != read.Load(); { // late records may only make it worse
			before = read.Load()
			time.Sleep(300 * time.Millisecond)
		}
	case <-enough:
	case err := <-done:
		panic(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println("resident", strings.TrimSuffix(strings.TrimSpace(kib), " kB"))
		}
	}
	stop()
	for range running {
		<-done
	}
}

// sourcesOf are the sources of a consumer with default settings: one, or those of three lanes.
func sourcesOf(lanes bool) []kafka.SourceConfig {
	one := kafka.SourceConfig{Topic: topic, Group: group, BatchRecords: 5000, FetchWait: 50 * time.Millisecond}
	if !lanes {
		return []kafka.SourceConfig{one}
	}
	one.Memory = kafka.NewMemory()
	one.BufferBytes = 24 << 20
	urgent, bulk := one, one
	urgent.Topic, urgent.Group, urgent.BatchRecords, urgent.BufferBytes = topic+"-urgent", group+"-urgent", 500, 8<<20
	bulk.Topic, bulk.Group, bulk.BufferBytes = topic+"-bulk", group+"-bulk", 8<<20
	return []kafka.SourceConfig{one, urgent, bulk}
}

type resident struct {
	name       string
	partitions int
	load       string
	records    int // of a set, one for each partition
	value      []byte
	codec      kgo.CompressionCodec
	read       int // sets
	lanes      bool
}

// large is a decision of 7 KB that deflates well.
var large = []byte(`{"decision_id":"a","input":[` + strings.Repeat(`{"name":"alice","roles":["a","b"]},`, 200) + `]}`)

// TestResident measures the memory of a process that reads with default settings. The limit of its container is 256
// MiB. The rest of a consumer, which decodes and writes, has the remaining memory.
//
//nolint:paralleltest // what else runs would make it slow
func TestResident(t *testing.T) {
	residentOf(t, []resident{
		{"40 hold", 40, "hold", 1500, large, kgo.ZstdCompression(), 0, false},
		{"40 read", 40, "read", 1500, large, kgo.ZstdCompression(), 40, false},
		{"40 wait", 40, "wait", 1500, large, kgo.ZstdCompression(), 0, false},
		{"200 hold without compression", 200, "hold", 130, large, kgo.NoCompression(), 0, false},
	})
}

func residentOf(t *testing.T, cases []resident) {
	t.Helper()
	repeated := func(n int, value []byte) (records []byte) {
		for i := range n {
			records = kafkatest.AppendRecord(records, i, value, 0)
		}
		return records
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			topics := []string{topic}
			if tc.lanes {
				topics = append(topics, topic+"-urgent", topic+"-bulk")
				tc.partitions /= len(topics)
			}
			c := kafkatest.New(t, kfake.SeedTopics(int32(tc.partitions), topics...), kfake.NumBrokers(3))
			set := kafkatest.Set(t, repeated(tc.records, tc.value), tc.records, tc.codec)
			all := make([]int32, tc.partitions)
			for p := range all {
				all[p] = int32(p)
			}
			client := c.Client(t)
			for _, one := range topics {
				kafkatest.Write(t, client, one, set, all...)
			}
			client.Close()
			count := tc.partitions * len(topics)
			if tc.load == "read" {
				count = tc.read * tc.records
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			reader := exec.CommandContext(ctx, os.Args[0])
			reader.Env = append(os.Environ(), loadOf+"="+tc.load, brokersOf+"="+strings.Join(c.Brokers(), ","), countOf+"="+strconv.Itoa(count))
			if tc.lanes {
				reader.Env = append(reader.Env, lanesOf+"=three")
			}
			var said bytes.Buffer
			reader.Stdout, reader.Stderr = &said, &said
			from := time.Now()
			if err := reader.Run(); err != nil {
				t.Fatalf("%v\n%.4000s", err, said.String())
			}
			var kib int64
			if _, err := fmt.Sscanf(said.String(), "resident %d", &kib); err != nil {
				t.Fatalf("%v\n%.4000s", err, said.String())
			}
			t.Logf("%d MiB resident, %v", kib>>10, time.Since(from))
			if kib > 224<<10 {
				t.Errorf("%d MiB were resident", kib>>10)
			}
		})
	}
}
