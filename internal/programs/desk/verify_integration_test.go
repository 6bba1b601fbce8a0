//go:build integration

package desk

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/inspect"
	"docket/internal/desk/api"
	"docket/internal/service/config"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// TestVerify_RealSystem: a desk finds a record that was read and has no home, and does not keep more than its limit.
func TestVerify_RealSystem(t *testing.T) {
	t.Parallel()
	db, broker, prefix := pgtest.New(t), testenv.Kafka(t), testenv.Prefix(t)
	source, parking, dead, last := prefix+"logs", prefix+"parking", prefix+"dlq", prefix+"pdlq"
	for _, topic := range []string{source, parking, dead, last} {
		broker.CreateTopic(t, topic, 1, nil)
	}
	s, _, err := config.LoadWith(config.Desk, []string{
		"DOCKET_DATABASE_URL=" + db.URL, "DOCKET_KAFKA_BROKERS=" + strings.Join(broker.Brokers(), ","), "DOCKET_KAFKA_TOPIC=" + source, "DOCKET_KAFKA_PARKING_TOPIC=" + parking,
		"DOCKET_KAFKA_DLQ_TOPIC=" + dead, "DOCKET_KAFKA_PARKING_DLQ_TOPIC=" + last, "DOCKET_KAFKA_GROUP=" + prefix + "group", "DOCKET_PARKING_GROUP=" + prefix + "parkers", "DOCKET_DESK_GROUP=" + prefix + "desk",
		"DOCKET_SPOOL_DIR=" + t.TempDir() + "/none",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	decision := []byte(`{"decision_id":"d-1","timestamp":"2026-11-21T10:00:00Z","path":"authz/allow","result":true}`)
	produce := func(topic string) {
		t.Helper()
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: decision}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce(source)
	verify := verifyIn(s)
	v, err := verify(t.Context(), api.VerifyScope{})
	if err != nil || v.Broken || !strings.Contains(v.Text, source+": 0 records") || !strings.Contains(v.Text, "1 records are not read yet\n"+source+": nothing was checked: ") || !strings.Contains(string(v.Report), `"broken": false`) {
		t.Errorf("not read: %v, %v\n%s", v.Broken, err, v.Text)
	}
	var offsets kadm.Offsets
	offsets.AddOffset(source, 0, 1, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), s.KafkaGroup, offsets); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []api.VerifyScope{{}, {Since: time.Now().Add(-time.Hour)}, {From: []string{source + "/0/0"}}} {
		v, err = verify(t.Context(), scope)
		if err != nil || !v.Broken || !strings.Contains(v.Text, "first broken, I1") || !strings.Contains(v.Text, source+"/0/0") {
			t.Errorf("%+v: %v, %v\n%s", scope, v.Broken, err, v.Text)
		}
	}
	if v, err = verify(t.Context(), api.VerifyScope{From: []string{source + "/0/1"}}); err != nil || v.Broken {
		t.Errorf("after it: %v, %v\n%s", v.Broken, err, v.Text)
	}
	var place *api.PlaceError
	if v, err = verify(t.Context(), api.VerifyScope{From: []string{source + "/0/2"}}); !errors.As(err, &place) || !strings.Contains(err.Error(), source+"/0 ends at 1") {
		t.Errorf("beyond the end: %v, %v\n%s", v.Broken, err, v.Text)
	}
	produce(dead)
	produce(dead)
	sys, err := inspect.Open(s, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	var many *inspect.TooManyError
	if _, err = sys.Verify(t.Context(), inspect.Scope{Since: time.Now().Add(-time.Hour), MostForwarded: 1}); !errors.As(err, &many) || many.Most != 1 {
		t.Errorf("more than a desk keeps: %v", err)
	}
	if _, err = sys.Verify(t.Context(), inspect.Scope{Since: time.Now().Add(-time.Hour), MostForwarded: 2}); err != nil {
		t.Errorf("as many as it keeps: %v", err)
	}
}
