package kafka

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// peekTime limits a peek. A leader that does not answer is asked once more by the scan, which can say why it failed.
const peekTime = 5 * time.Second

// peek is the beginning of a scan, and usually all of it: it reads what one request to each leader returns. The connections
// are usually open. A client of its own would need one, and about seven requests first.
//
// Of each partition that it read, it returns where it began and the next offset to be read. Any partition may be missing: of
// one that a broker did not answer as expected, nothing was read. The error is each's own, or that of ctx.
func (r *Reader) peek(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (began, next map[int32]int64, err error) {
	began, next = map[int32]int64{}, map[int32]int64{}
	for _, answer := range r.peeks(ctx, topic, from, to) {
		for i := range answer.Partitions {
			p := answer.Partitions[i].Partition
			end, wanted := to[p]
			if !wanted {
				continue
			}
			at, ok, err := r.peekInto(topic, &answer.Partitions[i], from[p], end, each)
			if err != nil {
				return began, next, err
			}
			if ok {
				began[p], next[p] = from[p], at
			}
		}
	}
	return began, next, ctx.Err()
}

// peeks asks all leaders at once, and returns their answers.
func (r *Reader) peeks(ctx context.Context, topic string, from, to map[int32]int64) (answers []kmsg.FetchResponseTopic) {
	ctx, cancel := context.WithTimeout(ctx, peekTime)
	defer cancel()
	topics, err := r.admin.ListTopics(ctx, topic)
	if err != nil || topics.Error() != nil {
		return nil
	}
	asked, share := map[int32]*kmsg.FetchRequest{}, r.cfg.Shares[topic] // by leader
	for _, p := range slices.Sorted(maps.Keys(to)) {
		of, there := topics[topic].Partitions[p]
		if !there || of.Err != nil || of.Leader < 0 || !share.Has(p) || from[p] >= to[p] {
			continue
		}
		req := asked[of.Leader]
		if req == nil {
			req = fetchRequest(topic, topics[topic].ID)
			asked[of.Leader] = req
		}
		one := kmsg.NewFetchRequestTopicPartition()
		one.Partition, one.FetchOffset, one.PartitionMaxBytes = p, from[p], mostPartitionBytes
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, one)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for leader, req := range asked {
		all.Go(func() {
			answer, err := r.client.Broker(int(leader)).Request(ctx, req)
			if of, ok := answer.(*kmsg.FetchResponse); ok && err == nil {
				mu.Lock()
				defer mu.Unlock()
				answers = append(answers, of.Topics...)
			}
		})
	}
	all.Wait()
	return answers
}

// fetchRequest is a request for committed records of a topic that does not wait for any.
func fetchRequest(topic string, id [16]byte) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = 0, 0, mostBytes, 1
	req.SessionID, req.SessionEpoch = 0, -1 // without a session
	of := kmsg.NewFetchRequestTopic()
	of.Topic, of.TopicID = topic, id
	req.Topics = append(req.Topics, of)
	return req
}

// peekInto calls each with the records of an answer from from up to, and without, end. It returns the next offset to be read.
// ok is false if the answer is an error; then each was not called.
func (r *Reader) peekInto(topic string, answer *kmsg.FetchResponseTopicPartition, from, end int64, each func(*kgo.Record) error) (next int64, ok bool, err error) {
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		KeepControlRecords: true, Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: topic, Partition: answer.Partition,
	}, answer, r.inflater, nil)
	if fetched.Err != nil { // also that of the broker
		return 0, false, nil //nolint:nilerr // the scan with a client of its own reports it
	}
	for _, rec := range fetched.Records {
		if rec.Offset >= end {
			return end, true, nil
		}
		if rec.Attrs.IsControl() {
			continue
		}
		if err := each(rec); err != nil {
			return 0, true, err
		}
	}
	return max(next, from), true, nil
}
