//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// client is a client of the system's brokers.
func (s *system) client(options ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.places.Brokers...), kgo.DefaultProduceTopic(s.places.Topic)}, options...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	return cl
}

func (s *system) admin() *kadm.Client { return kadm.NewClient(s.client()) }

// sendTo writes n decisions, with ids that begin with name, into one partition of the source.
func (s *system) sendTo(partition int32, name string, n int, options ...kgo.Opt) {
	s.t.Helper()
	cl := s.client(append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	var rs []*kgo.Record
	for i := range n {
		rs = append(rs, &kgo.Record{Partition: partition, Value: []byte(logOf(fmt.Sprintf("%s-%d", name, i), ""))})
	}
	if err := cl.ProduceSync(s.t.Context(), rs...).FirstErr(); err != nil {
		s.t.Fatalf("produce: %v", err)
	}
}

// commits waits until the group committed that offset of a partition, and no more.
func (s *system) commits(partition int32, offset int64) {
	s.t.Helper()
	adm := s.admin()
	eventually(s.t, patience, fmt.Sprintf("%d of partition %d is committed", offset, partition), func() error {
		offsets, err := adm.FetchOffsetsForTopics(s.t.Context(), s.places.Group, s.places.Topic)
		if err != nil {
			return err
		}
		if at, _ := offsets.Lookup(s.places.Topic, partition); at.Err != nil || at.At != offset {
			return fmt.Errorf("committed %d, %w", at.At, at.Err)
		}
		return nil
	})
}

// keeps waits until the table has so many rows of decisions with that name.
func (s *system) keeps(name string, n int) {
	s.t.Helper()
	db := s.connect()
	eventually(s.t, patience, fmt.Sprintf("%d decisions %s have their rows", n, name), func() error {
		var got int
		if err := db.QueryRow(s.t.Context(), "SELECT count(*) FROM decision_logs WHERE decision_id LIKE $1", name+"-%").Scan(&got); err != nil || got != n {
			return fmt.Errorf("%d rows, %w", got, err)
		}
		return nil
	})
}

// settles waits until the process is ready, and sees that the table has so many rows and all is accounted for.
func (s *system) settles(p *process, rows int) {
	s.t.Helper()
	eventually(s.t, patience, p.name+" is ready", func() error {
		if code, body := p.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
	if n := s.rows("true"); n != rows {
		s.t.Errorf("%d rows, want %d", n, rows)
	}
	p.sound()
}

// hint waits until /readyz says that reading holds for that reason, and returns its hint.
func (p *process) hint(reason string) (hint string) {
	p.t.Helper()
	p.awaitHold(reason)
	eventually(p.t, patience, p.name+" has a hint", func() error {
		status, body := p.get("/readyz")
		var readiness struct {
			Reasons []struct{ Reason, Hint string } `json:"reasons"`
		}
		if err := json.Unmarshal([]byte(body), &readiness); err != nil {
			return fmt.Errorf("/readyz: %w", err)
		}
		for _, r := range readiness.Reasons {
			if r.Reason == reason && status == http.StatusServiceUnavailable {
				hint = r.Hint
				return nil
			}
		}
		return fmt.Errorf("/readyz: %d %s", status, body)
	})
	return hint
}

var resetCommand = regexp.MustCompile("`kafka-consumer-groups.sh --bootstrap-server (\\S+) ([^`]+)`")

// follow runs the command of a hint with the tools of a broker, which knows itself by another address.
func (s *system) follow(broker testenv.Handle, hint string) {
	s.t.Helper()
	words := resetCommand.FindStringSubmatch(hint)
	if words == nil || words[1] != strings.Join(s.places.Brokers, ",") {
		s.t.Fatalf("no command for these brokers in %q", hint)
	}
	out, err := broker.Output(s.t.Context(), "bash", "-c", "export "+brief+"\n/opt/kafka/bin/kafka-consumer-groups.sh --bootstrap-server localhost:19092 "+words[2])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%s printed:\n%s", words[0], out)
}
