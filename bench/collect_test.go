//go:build integration

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/record/subject"
	"docket/internal/testkit/testenv"
)

const (
	collectClients = 16      // that upload at the same time, each over a connection of its own
	collectCrowd   = 100     // the same, as a hundred OPAs would
	collectApart   = 100_000 // decisions that differ; the load repeats them
	collectFewer   = 4       // times fewer decisions in small uploads, as a rate
)

const (
	bareName    = "bare producer"
	collectName = "collector, uploads of 32 KiB"
	smallName   = "collector, uploads of 5 decisions"
	crowdName   = "collector, uploads of 5 decisions from 100"
	redactName  = "collector, uploads of 32 KiB, redacting"
)

// redacting are rules that hit most of the sample.
var redacting = []string{"DOCKET_COLLECTOR_DROP=/metrics,/input/password", "DOCKET_COLLECTOR_MASK=/input/user,/labels/version"}

// collect compares the collector with a producer that has the same records ready-made.
func (b *bench) collect(ctx context.Context) error {
	logs, err := Real(b.Seed, min(b.N, collectApart))
	if err != nil {
		return err
	}
	records := keyed(logs)
	large, err := Uploads(logs, OPAUpload, 0)
	if err != nil {
		return err
	}
	small, err := Uploads(logs, 0, collectSmall)
	if err != nil {
		return err
	}
	b.say("%d decisions, %d bytes on average; %d uploads of %d bytes, and %d of %d decisions", len(logs), size(logs)/len(logs), len(large), sizes(large)/len(large), len(small), collectSmall)
	act := func(name string, run func(context.Context) (Run, error)) func() error {
		return func() error {
			_, err := b.measure(ctx, name, run)
			return err
		}
	}
	if _, err := b.produced(ctx, records); err != nil { // the broker compiles as it runs: not at the cost of who comes first
		return fmt.Errorf("warm up: %w", err)
	}
	fewer := max(b.N/collectFewer, 1)
	err = b.rounds(b.Rounds,
		act(bareName, func(ctx context.Context) (Run, error) { return b.produced(ctx, records) }),
		act(collectName, func(ctx context.Context) (Run, error) { return b.collected(ctx, b.N, large, collectClients) }),
		act(smallName, func(ctx context.Context) (Run, error) { return b.collected(ctx, fewer, small, collectClients) }),
		act(crowdName, func(ctx context.Context) (Run, error) { return b.collected(ctx, fewer, small, collectCrowd) }),
		act(redactName, func(ctx context.Context) (Run, error) {
			return b.collected(ctx, b.N, large, collectClients, redacting...)
		}),
	)
	if err != nil {
		return err
	}
	bare, runs := b.runs[bareName], b.runs[collectName]
	b.judge("bare producer, decisions a second", Over(bare, Run.Rate), nil, "%.0f", "acks=all, lz4, the same keys, 8 partitions, as fast as it can")
	b.judge("… CPU, s for a million decisions", Over(bare, Run.WorkerCPU), nil, "", "of the harness, which does nothing else then")
	b.judgeUploads(runs, bare, AtLeast(20_000), AtLeast(0.75), fmt.Sprintf("uploads of 32 KiB, %d decisions each, from %d", len(logs)/len(large), collectClients))
	b.judge("… peak memory, MiB", Over(runs, func(r Run) float64 { return float64(r.Peak) / (1 << 20) }), nil, "%.0f", "VmHWM")
	b.judge("… redacting, rate against not", Between(b.runs[redactName], runs, Rates), nil, "", "two values dropped, two masked, where they are there")
	b.judge("… redacting, CPU against not", Between(b.runs[redactName], runs, CPUs), nil, "", "")
	b.judgeUploads(b.runs[smallName], bare, nil, nil, fmt.Sprintf("uploads of %d decisions from %d", collectSmall, collectClients))
	b.judgeUploads(b.runs[crowdName], bare, AtLeast(80_000), nil, fmt.Sprintf("uploads of %d decisions from %d", collectSmall, collectCrowd))
	b.judge("… rate against that from 16", Between(b.runs[crowdName], b.runs[smallName], Rates), nil, "", "")
	b.judge("… rate against uploads of 32 KiB", Between(b.runs[crowdName], runs, Rates), nil, "", "")
	return nil
}

// judgeUploads says what uploads of one kind came to.
func (b *bench) judgeUploads(runs, bare []Run, rate, share *Goal, which string) {
	b.judge("collector, decisions a second in "+which, Over(runs, Run.Rate), rate, "%.0f", "200 only once all are acknowledged by acks=all")
	b.judge("… rate against the bare producer", Between(runs, bare, Rates), share, "", "the same records, the same round")
	b.judge("… CPU of the collector, s for a million decisions", Over(runs, Run.WorkerCPU), nil, "", "")
	b.judge("… CPU of the collector against the bare producer", Between(runs, bare, CPUs), nil, "", "")
	b.judge("… CPU of the collector an upload, ms", Over(runs, func(r Run) float64 { return r.Worker.Seconds() * 1000 / float64(r.Uploads) }), nil, "", "")
	b.judge("… from an upload to its answer, ms", Over(runs, Run.UploadTime), nil, "%.1f", "mean: uploaders, times the time of the run, by uploads")
	b.judge("… decisions in a batch for the broker", Over(runs, func(r Run) float64 { return r.InBatch }), nil, "%.1f", "of one partition, from as many uploads as came together")
	b.judge("… share of the machine: collector", Over(runs, func(r Run) float64 { return r.Share(r.Worker) }), nil, "", "uploaders are in the harness, so that all three share it")
	b.judge("… share of the machine: Kafka", Over(runs, func(r Run) float64 { return r.Share(r.Kafka) }), nil, "", "")
}

func size(logs [][]byte) (n int) {
	for _, log := range logs {
		n += len(log)
	}
	return n
}

func sizes(uploads []Upload) (n int) {
	for _, u := range uploads {
		n += len(u.Body)
	}
	return n
}

// keyed are the records that the collector makes of decisions.
func keyed(logs [][]byte) []kgo.Record {
	records := make([]kgo.Record, len(logs))
	for i, log := range logs {
		key, ok := subject.Spec{}.Of(log)
		if !ok {
			key, _ = subject.Spec{Kind: subject.DecisionID}.Of(log)
		}
		records[i] = kgo.Record{Key: []byte(key), Value: log}
	}
	return records
}

// produced has a plain producer, a part of the harness, write N records.
func (b *bench) produced(ctx context.Context, records []kgo.Record) (run Run, err error) {
	return b.into(ctx, b.N, func(topic string, run *Run) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers()...), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()),
			kgo.ProducerBatchCompression(kgo.Lz4Compression()))
		if err != nil {
			return err
		}
		defer client.Close()
		if err := client.Ping(ctx); err != nil {
			return err
		}
		before, err := self()
		if err != nil {
			return err
		}
		began := time.Now()
		var failure atomic.Pointer[error]
		for i := range b.N {
			client.Produce(ctx, &kgo.Record{Key: records[i%len(records)].Key, Value: records[i%len(records)].Value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failure.CompareAndSwap(nil, &err)
				}
			})
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if err := failure.Load(); err != nil {
			return *err
		}
		run.Took = time.Since(began)
		after, err := self()
		run.Worker = after - before
		return err
	})
}

// into does a run with a topic of its own and sees that each of n decisions is in it: once, but for those of uploads that were
// put off, of which a part may have been taken.
func (b *bench) into(ctx context.Context, n int, do func(topic string, run *Run) error) (run Run, err error) {
	b.started++
	topic := fmt.Sprintf("collect-%d", b.started)
	if err := b.create(ctx, topic, partitions, nil); err != nil {
		return run, err
	}
	defer func() {
		if gone := b.remove(context.WithoutCancel(ctx), topic); err == nil {
			err = gone
		}
	}()
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.Rows = int64(n)
	if err := do(topic, &run); err != nil {
		return run, err
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	known := run.Worker
	if run.Peak == 0 {
		known = 0 // the harness did it, which is known as it is
	}
	run.since(from, to, known)
	ends, err := kadm.NewClient(b.client).ListEndOffsets(ctx, topic)
	if err != nil {
		return run, err
	}
	var there int64
	ends.Each(func(o kadm.ListedOffset) { there += o.Offset })
	if there < run.Rows || there > run.Rows && run.Retries == 0 {
		return run, fmt.Errorf("the account does not add up: %s has %d records, and should have %d", topic, there, run.Rows)
	}
	return run, nil
}

// collected has clients upload n decisions to a collector with its default settings.
func (b *bench) collected(ctx context.Context, n int, uploads []Upload, clients int, settings ...string) (Run, error) {
	return b.into(ctx, n, func(topic string, run *Run) error {
		addr, err := testenv.FreeAddr()
		if err != nil {
			return err
		}
		w, err := b.launch(b.collector, append([]string{"DOCKET_KAFKA_TOPIC=" + topic, "DOCKET_COLLECTOR_ADDR=" + addr}, settings...)...)
		if err != nil {
			return err
		}
		defer w.kill()
		ready, err := w.awaitReady(ctx)
		if err != nil {
			return err
		}
		run.StartUp = ready.Sub(w.started)
		before, err := processCPU(w.pid())
		if err != nil {
			return err
		}
		bodies := b.bodies(n, uploads)
		run.Uploads, run.Uploaders = int64(len(bodies)), clients
		began := time.Now()
		if run.Retries, err = b.upload(ctx, "http://"+addr+"/logs", bodies, clients); err != nil {
			return fmt.Errorf("%w, see %s", err, w.log)
		}
		run.Took = time.Since(began)
		after, err := processCPU(w.pid())
		if err != nil {
			return err
		}
		run.Worker = after - before
		if run.Peak, err = peakMemory(w.pid()); err != nil {
			return err
		}
		told, err := w.metrics(ctx)
		if err != nil {
			return err
		}
		run.InBatch = told.sum("docket_kafka_produce_records_total") / told.sum("docket_kafka_produce_batches_total")
		return w.stop()
	})
}

// upload posts all bodies. A client that is put off waits for as long as the answer says, and is counted.
func (b *bench) upload(ctx context.Context, url string, bodies [][]byte, clients int) (putOff int64, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	var next, off atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	for range clients {
		all.Go(func() error {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(bodies)) {
					return nil
				}
				for {
					pause, err := post(ctx, client, url, bodies[i])
					if err != nil {
						return err
					}
					if pause == 0 {
						break
					}
					off.Add(1)
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(pause):
					}
				}
			}
		})
	}
	err = all.Wait()
	return off.Load(), err
}

// bodies are uploads that have n decisions together; the last is made to fit.
func (b *bench) bodies(n int, uploads []Upload) (bodies [][]byte) {
	for left, i := n, 0; left > 0; i++ {
		u := uploads[i%len(uploads)]
		if u.Decisions > left {
			logs, err := Real(b.Seed, left)
			if err == nil {
				u.Body, err = zipped(logs)
			}
			if err != nil {
				panic(err) // memory takes what is written, and the sample was read before
			}
			u.Decisions = left
		}
		bodies = append(bodies, u.Body)
		left -= u.Decisions
	}
	return bodies
}

// post uploads once. A pause is how long to wait before it is tried again.
func post(ctx context.Context, client *http.Client, url string, body []byte) (pause time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("upload: %w", err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again; the status is all that counts
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // without it at once
		return max(10*time.Millisecond, time.Duration(seconds)*time.Second), nil
	default:
		return 0, fmt.Errorf("upload: answered %d", resp.StatusCode)
	}
}
