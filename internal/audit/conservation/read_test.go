package conservation

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

func sealed(t *testing.T, to string, offset int64, value []byte) *kgo.Record {
	t.Helper()
	r := &kgo.Record{Topic: topic, Partition: 2, Offset: offset, Key: []byte("k"), Value: value}
	return envelope.Open(r).Seal(envelope.Cause{Kind: envelope.Decode, Code: codeEmpty},
		envelope.Sealed{Topic: to, Index: envelope.NoIndex, Value: value, At: time.Unix(1, 0)})
}

func TestReadTopic_ToItsEnd(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "parking", "nothing"), kfake.SeedTopics(1, topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	values := [][]byte{nil, {}, []byte("x")}
	for i, v := range values {
		r := sealed(t, "parking", int64(i), v)
		r.Partition = int32(i % 2)
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	foreign := &kgo.Record{Topic: "parking", Value: []byte("no headers")}
	if err := cl.ProduceSync(ctx, foreign).FirstErr(); err != nil {
		t.Fatal(err)
	}
	found, err := ReadTopic(ctx, cluster.ListenAddrs(), "parking", home.Parked, map[int32]int64{0: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 4 {
		t.Fatalf("%d records read", len(found))
	}
	settled, foreigners := 0, 0
	for _, f := range found {
		if f.Settled {
			settled++
		}
		if f.NoOrigin {
			foreigners++
			continue
		}
		if f.Value != verify.SumOf(values[f.Offset]) || f.Partition != 2 || f.Index != envelope.NoIndex || f.Code != codeEmpty || f.Home != home.Parked {
			t.Errorf("read %+v", f)
		}
	}
	if settled != 1 || foreigners != 1 {
		t.Errorf("%d settled, %d without origin", settled, foreigners)
	}
	if found, err := ReadTopic(ctx, cluster.ListenAddrs(), "nothing", home.Parked, nil); err != nil || len(found) != 0 {
		t.Errorf("an empty topic reads as %v, %v", found, err)
	}
	if _, err := ReadTopic(ctx, cluster.ListenAddrs(), "missing", home.Parked, nil); err == nil {
		t.Error("a missing topic reads as empty")
	}
	checkLag(ctx, t, cluster.ListenAddrs(), cl)
}

func checkLag(ctx context.Context, t *testing.T, brokers []string, cl *kgo.Client) {
	t.Helper()
	at := Places{Brokers: brokers, Topic: topic, Group: "g", ParkingTopic: "parking", ParkingGroup: "p"}
	for range 3 {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	offsets := make(kadm.Offsets)
	offsets.AddOffset(topic, 0, 2, -1)
	if err := kadm.NewClient(cl).CommitAllOffsets(ctx, "g", offsets); err != nil {
		t.Fatal(err)
	}
	source, parking, err := at.Lag(ctx)
	if err != nil || source != 1 || parking != 4 {
		t.Errorf("lag %d and %d, %v", source, parking, err)
	}
	at.Lanes = []Lane{{"nothing", "g"}, {"parking", "nobody"}}
	if source, _, err := at.Lag(ctx); err != nil || source != 1+4 {
		t.Errorf("lag %d of all lanes, %v", source, err)
	}
	reader, err := at.reader()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	read, err := reader.Committed(ctx, "g", topic)
	if err != nil || len(read) != 1 || read[0] != 2 {
		t.Errorf("committed %v, %v", read, err)
	}
}

func TestReadSpool_File(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := `{"topic":"dlq","key":"/w==","key_encoding":"base64","value":null,"headers":[{"key":"x-original-topic","value":"` + topic +
		`"},{"key":"x-original-partition","value":"3"},{"key":"x-original-offset","value":"9"},{"key":"x-original-index","value":"1"},{"key":"x-failure-code","value":"ZW1wdHk=","encoding":"base64"}],"timestamp":null}` + "\n"
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if _, err := zw.Write([]byte(line + line)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1_a_1.jsonl.gz"), buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := ReadSpool(dir)
	if err != nil || len(found) != 2 {
		t.Fatalf("read %v, %v", found, err)
	}
	f := found[0]
	if (f.Place != Place{Topic: topic, Partition: 3, Offset: 9, Index: 1}) || f.Home != home.Spooled || f.Code != "empty" || f.Key != verify.SumOf([]byte("\xff")) || f.Value != verify.SumOf(nil) {
		t.Errorf("read %+v", f)
	}
	if found, err := ReadSpool(filepath.Join(dir, "missing")); err != nil || len(found) != 0 {
		t.Errorf("no directory reads as %v, %v", found, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2_a_2.jsonl.gz"), buf.Bytes()[:buf.Len()-4], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSpool(dir); err == nil {
		t.Error("half a file was read without complaint")
	}
}
