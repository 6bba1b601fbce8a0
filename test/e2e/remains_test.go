//go:build integration

package e2e

import (
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
)

// remains is what a dead process left behind, by name: rows, committed and replayed (offsets of the two groups), dead,
// parked and exhausted (records of the topics), spooled and tmp (files of the shared spool).
type remains map[string]int64

// differ says what is not as expected: "rows=0 tmp=+" means zero rows, some temporary files, and any number of the others.
func (r remains) differ(expected string) string {
	var problems []string
	for want := range strings.FieldsSeq(expected) {
		name, amount, _ := strings.Cut(want, "=")
		n, known := r[name]
		if !known || amount != "0" && amount != "+" || (n > 0) != (amount == "+") {
			problems = append(problems, fmt.Sprintf("%s is %d, expected %s", name, n, amount))
		}
	}
	return strings.Join(problems, ", ")
}

func (s *system) remains() remains {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	r := remains{"rows": int64(s.rows("true")), "spooled": 0, "tmp": 0}
	for name, at := range map[string][2]string{
		"committed": {s.places.Group, s.places.Topic}, "replayed": {s.places.ParkingGroup, s.places.ParkingTopic},
	} {
		offsets, _ := adm.FetchOffsets(s.t.Context(), at[0]) // a group that nobody joined has none
		r[name] = 0
		offsets.Each(func(o kadm.OffsetResponse) { r[name] += max(0, o.At) })
	}
	for name, topic := range map[string]string{"dead": s.places.DLQTopic, "parked": s.places.ParkingTopic, "exhausted": s.places.ParkingDLQ} {
		ends, err := adm.ListEndOffsets(s.t.Context(), topic)
		if err != nil {
			s.t.Fatalf("list offsets of %s: %v", topic, err)
		}
		r[name] = 0
		ends.Each(func(o kadm.ListedOffset) { r[name] += max(0, o.Offset) }) // a topic that was deleted holds nothing
	}
	files, err := os.ReadDir(s.spool())
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for _, f := range files {
		switch name := f.Name(); {
		case strings.HasSuffix(name, ".jsonl.gz"):
			r["spooled"]++
		case strings.HasSuffix(name, ".tmp"):
			r["tmp"]++
		}
	}
	return r
}

// nothingLostYet counts while nobody works: every committed record has its home, and no home has too much.
func (s *system) nothingLostYet() {
	s.t.Helper()
	ev, err := conservation.Gather(s.t.Context(), s.places, s.ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	a := conservation.Reconcile(s.ledger, ev)
	for what, found := range map[string][]conservation.Finding{
		"committed without a home": a.Lost, "in two homes": a.Doubled, "never produced": a.Invented, "altered": a.Altered,
	} {
		if len(found) > 0 {
			s.t.Errorf("at the moment of death %d are %s, the first is %v", len(found), what, found[0])
		}
	}
}
