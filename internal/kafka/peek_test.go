package kafka_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// scanner is a reader of a cluster.
func scanner(t *testing.T, c *kafkatest.Cluster) *kafka.Reader {
	t.Helper()
	r, err := kafka.NewReader(fast(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// scanned is what a scan returned: the offsets of each partition, in the order in which they came, and where it began.
func scanned(t *testing.T, r *kafka.Reader, from, to map[int32]int64) (offsets map[int32]string, began map[int32]int64) {
	t.Helper()
	offsets = map[int32]string{}
	began, err := r.Scan(t.Context(), topic, from, to, func(rec *kgo.Record) error {
		offsets[rec.Partition] += fmt.Sprint(rec.Offset, " ")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return offsets, began
}

// TestScan_OneRequestToEachLeader: a short scan needs no connection and no offsets first.
func TestScan_OneRequestToEachLeader(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.NumBrokers(2), kfake.SeedTopics(3, topic))
	for p := range int32(3) {
		c.Values(t, topic, p, "0", "1", "2", "3")
	}
	r := scanner(t, c)
	scanned(t, r, nil, map[int32]int64{0: 4, 1: 4, 2: 4}) // it connects
	var fetches, offsets atomic.Int32
	c.Watch(kmsg.Fetch, func(kmsg.Request) { fetches.Add(1) })
	c.Watch(kmsg.ListOffsets, func(kmsg.Request) { offsets.Add(1) })
	got, began := scanned(t, r, map[int32]int64{0: 1, 1: 2}, map[int32]int64{0: 3, 1: 4, 2: 4})
	if want := map[int32]string{0: "1 2 ", 1: "2 3 ", 2: "0 1 2 3 "}; !maps.Equal(got, want) || !maps.Equal(began, map[int32]int64{0: 1, 1: 2, 2: 0}) {
		t.Errorf("read %v from %v", got, began)
	}
	if fetches.Load() > 2 || offsets.Load() != 0 {
		t.Errorf("%d fetches from 2 brokers, %d questions for offsets", fetches.Load(), offsets.Load())
	}
}

// TestScan_EachRecordOnceAfterAFault: a leader that does not answer the first request as expected is asked in the other way.
func TestScan_EachRecordOnceAfterAFault(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*kafkatest.Cluster){
		"another leader":   func(c *kafkatest.Cluster) { c.Fail(kmsg.Fetch, kerr.NotLeaderForPartition, 1) },
		"an unknown topic": func(c *kafkatest.Cluster) { c.Fail(kmsg.Fetch, kerr.UnknownTopicID, 1) },
		"the connection": func(c *kafkatest.Cluster) {
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				return nil, errors.New("hung up on purpose"), true
			})
		},
		"what was deleted": func(c *kafkatest.Cluster) {
			client := c.Client(t)
			defer client.Close()
			var cut kadm.Offsets
			cut.AddOffset(topic, 0, 2, -1)
			if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), cut); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.New(t, kfake.SeedTopics(2, topic))
			for p := range int32(2) {
				c.Values(t, topic, p, "0", "1", "2", "3")
			}
			r := scanner(t, c)
			fault(c)
			got, began := scanned(t, r, nil, map[int32]int64{0: 3, 1: 99})
			first, at := "0 1 2 ", int64(0)
			if name == "what was deleted" {
				first, at = "2 ", 2
			}
			if want := map[int32]string{0: first, 1: "0 1 2 3 "}; !maps.Equal(got, want) || !maps.Equal(began, map[int32]int64{0: at, 1: 0}) {
				t.Errorf("read %v from %v", got, began)
			}
		})
	}
}

// TestScan_CommittedOnly: records of an aborted transaction are not read, nor are the markers of transactions.
func TestScan_CommittedOnly(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	client := c.Client(t, kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	defer client.Close()
	for _, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("v"), kgo.StringRecord("v")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	r := scanner(t, c)
	for _, end := range []int64{9, 99} {
		if got, began := scanned(t, r, nil, map[int32]int64{0: end}); got[0] != "3 4 " || began[0] != 0 {
			t.Errorf("up to %d: read %v from %v", end, got, began)
		}
	}
}

// TestScan_WaitsForAnOpenTransaction: the first request ends before a transaction that is open. The records behind it are read when it ends.
func TestScan_WaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, "v", "v")
	client := c.Client(t, kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("v")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var got []int64
	began, err := scanner(t, c).Scan(t.Context(), topic, nil, map[int32]int64{0: 3}, func(rec *kgo.Record) error {
		if got = append(got, rec.Offset); rec.Offset == 1 {
			return client.EndTransaction(t.Context(), kgo.TryCommit)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, []int64{0, 1, 2}) || began[0] != 0 {
		t.Errorf("read %v from %v, %v", got, began, err)
	}
}
