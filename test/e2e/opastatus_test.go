//go:build integration

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
	"docket/sample/policies"
)

// TestOPA_TellsItsDrops: both versions of OPA send status updates to the service of their decisions. The collector counts
// the decisions that they dropped as they do, and none of their updates becomes a dead letter.
func TestOPA_TellsItsDrops(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	uploads := freeAddr(t)
	collector := s.collector(uploads)
	bundle := testenv.ServeBundle(t, "shop", policies.Files, "r1")
	var opas []*testenv.OPA
	for _, of := range []testenv.OPAOptions{{Buffer: "event", BufferEvents: 5}, {Version: testenv.OPAPrevious, BufferBytes: 6000, UploadBytes: 4000}} {
		of.Service, of.Token, of.Bundle, of.Status = "http://"+uploads, opaToken, bundle, true
		opas = append(opas, testenv.StartOPA(t, of))
	}
	const asked = 200
	for _, opa := range opas {
		for n := range asked {
			question := map[string]any{"user": "bob", "amount": 7, "note": noise(600 + n%50)} // which gzip does not shorten
			if _, err := opa.Ask(t.Context(), "shop/refund/decision", question); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, patience, "the collector knows as many drops as the OPAs", func() error {
		dropped := 0.0
		for i, opa := range opas {
			state, err := opa.State(t.Context())
			if err != nil || state.Dropped() == 0 {
				return fmt.Errorf("OPA %d dropped %v, %v", i, state.Dropped(), err)
			}
			dropped += state.Dropped()
		}
		if n := collector.metric("docket_collector_opa_dropped_decisions_total"); n != dropped {
			return fmt.Errorf("%v of %v", n, dropped)
		}
		return nil
	})
	for series, want := range map[string]float64{"docket_collector_opas": 2, "docket_collector_opa_failing": 0} {
		if n := collector.metric(series); n != want {
			t.Errorf("%s is %v", series, n)
		}
	}
	if !strings.Contains(collector.out.String(), "decisions dropped by OPA") {
		t.Error("no line tells of the drops")
	}
	for _, opa := range opas {
		opa.Stop()
	}
	s.consumer()
	s.drained(patience)
	if letters := s.forwarded(s.places.DLQTopic, home.DeadLetter); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
	rows := 0
	if err := s.connect().QueryRow(t.Context(), "SELECT count(*) FROM decision_logs").Scan(&rows); err != nil || rows == 0 {
		t.Errorf("%d decisions were stored, %v", rows, err)
	}
}
