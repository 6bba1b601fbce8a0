//go:build integration

package tree_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/kafka"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/tree"
	"docket/internal/service/config"
	"docket/internal/testkit/testenv"
)

// TestTopicsCreate_RealBroker: Apache Kafka takes the plan, a dry run creates nothing, and a second run finds all of it.
func TestTopicsCreate_RealBroker(t *testing.T) {
	t.Parallel()
	addr := testenv.Kafka(t).Brokers()[0]
	const name = "topics-create"
	environ := []string{
		"DOCKET_KAFKA_BROKERS=" + addr, "DOCKET_KAFKA_TOPIC=" + name, "DOCKET_KAFKA_PARKING_TOPIC=" + name + "-parking",
		"DOCKET_KAFKA_DLQ_TOPIC=" + name + "-dlq", "DOCKET_KAFKA_PARKING_DLQ_TOPIC=" + name + "-parking-dlq", "DOCKET_LANES=urgent",
	}
	create := func(args ...string) (code int, out, errs bytes.Buffer) {
		code = tree.Main(cli.Env{Program: config.Desk, Args: append([]string{"topics", "create"}, args...), Environ: environ, Stdout: &out, Stderr: &errs}, frame.Options{})
		return code, out, errs
	}
	run := func(want string, args ...string) {
		t.Helper()
		code, out, errs := create(args...)
		if code != cli.Done || !strings.Contains(out.String(), want) {
			t.Fatalf("%v: exit %d\n%s%s", args, code, out.String(), errs.String())
		}
	}
	describe := func() []kafka.Topic {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := kafka.Describe(ctx, kafka.Config{Brokers: []string{addr}}, []string{name, name + "-urgent", name + "-parking", name + "-dlq", name + "-parking-dlq"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Topics
	}
	// settled describes the topics once every broker's metadata has them: that follows their creation.
	settled := func() []kafka.Topic {
		t.Helper()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.After(time.Minute); ; {
			all := describe()
			if !slices.ContainsFunc(all, func(is kafka.Topic) bool { return is.Err != nil || is.ConfigErr != nil }) {
				return all
			}
			select {
			case <-deadline:
				t.Fatalf("after a minute: %+v", all)
			case <-tick.C:
			}
		}
	}
	if code, _, errs := create("--partitions", "2"); code != cli.Failed || !strings.Contains(errs.String(), "name --replication 1") {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	run("dry run: nothing was created", "--dry-run", "--partitions", "2", "--replication", "1")
	for _, is := range describe() {
		if is.Err == nil {
			t.Fatalf("a dry run created %s", is.Name)
		}
	}
	run(name+"-urgent: created", "--partitions", "2", "--replication", "1")
	for i, is := range settled() {
		home := i >= 2
		if is.Partitions != 2 || is.Replication != 1 || is.CleanupPolicy != "delete" || is.MinInSyncReplicas != 1 ||
			home && (is.Retention != 30*24*time.Hour || is.MaxMessageBytes != 1048588+4096) {
			t.Errorf("%+v", is)
		}
	}
	run("nothing to create: all topics exist")
}
