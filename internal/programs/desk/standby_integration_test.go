//go:build integration

package desk

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/audit/inspect"
	"docket/internal/desk/api"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/programs/cli"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// TestStandby_IsBehind: an absence on a standby proves nothing. Neither verify nor where-is calls a decision lost, or says that there is
// none of its id. A row on the standby is proof.
func TestStandby_IsBehind(t *testing.T) {
	t.Parallel()
	pair := testenv.OwnPostgresPair(t, testenv.PairOptions{})
	primary, standby := pair.Primary.URL("postgres"), pair.Standby.URL("postgres")
	st, err := store.Open(db.Config{URL: primary, StoreTimeout: time.Minute}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if _, err := schema.New(st.DB).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const path, result = `"path":"authz/allow"`, `"result":true`
	at := time.Now().UTC().Truncate(time.Second)
	body := func(id string) string {
		return `{"decision_id":"` + id + `","timestamp":"` + at.Format(time.RFC3339) + `",` + path + `,` + result + `}`
	}
	broker := kafkatest.New(t, kfake.SeedTopics(1, "logs", "parking", "dlq", "pdlq"))
	broker.Values(t, "logs", 0, body("there"), body("behind"))
	client := broker.Client(t)
	defer client.Close()
	var offsets kadm.Offsets
	offsets.AddOffset("logs", 0, 2, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), "docket", offsets); err != nil {
		t.Fatal(err)
	}
	keep := func(id string, offset int64) {
		t.Helper()
		r := pgtest.Row(id, at, body(id))
		r.Topic, r.Partition, r.Offset, r.Index = "logs", 0, offset, 0
		pgtest.Store(t, st, r)
	}
	keep("there", 0)
	if err := pair.Synchronous(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := pair.Alone(t.Context()); err != nil {
		t.Fatal(err)
	}
	pair.CutOff()
	awaitAlone(t, primary)
	keep("behind", 1)

	of := func(database string) config.Settings {
		s, _, err := config.LoadWith(config.Desk, []string{
			"DOCKET_DATABASE_URL=" + database, "DOCKET_KAFKA_BROKERS=" + strings.Join(broker.Brokers(), ","), "DOCKET_KAFKA_TOPIC=logs", "DOCKET_KAFKA_PARKING_TOPIC=parking",
			"DOCKET_KAFKA_DLQ_TOPIC=dlq", "DOCKET_KAFKA_PARKING_DLQ_TOPIC=pdlq", "DOCKET_SPOOL_DIR=" + t.TempDir() + "/none",
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const says = "this server is a standby, which may be behind: name the primary in DOCKET_DATABASE_URL"
	verify := func(url string) api.Verification {
		t.Helper()
		v, err := verifyIn(of(url))(t.Context(), api.VerifyScope{Settled: true})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := verify(primary); v.Broken || strings.Contains(v.Text, "standby") || !strings.Contains(v.Text, "I1   ok") {
		t.Errorf("primary: broken %v\n%s", v.Broken, v.Text)
	}
	// Of several hosts it is the primary, also after a failover, which leaves the standby first in the URL.
	there, err := url.Parse(primary)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"disable", "prefer"} {
		first, err := url.Parse(standby)
		if err != nil {
			t.Fatal(err)
		}
		first.Host += "," + there.Host
		first.RawQuery = "sslmode=" + mode
		if v := verify(first.String()); v.Broken || strings.Contains(v.Text, "standby") || !strings.Contains(v.Text, "I1   ok") {
			t.Errorf("the standby first, sslmode %s: broken %v\n%s", mode, v.Broken, v.Text)
		}
		first.Host = strings.Split(first.Host, ",")[0] + ",127.0.0.1:1"
		if v := verify(first.String()); v.Broken || !strings.Contains(v.Text, says) {
			t.Errorf("the primary is away, sslmode %s: broken %v\n%s", mode, v.Broken, v.Text)
		}
	}
	v := verify(standby)
	if v.Broken || !strings.Contains(v.Text, says) || !strings.Contains(v.Text, "I1   not decidable here") {
		t.Errorf("standby: broken %v\n%s", v.Broken, v.Text)
	}
	if !strings.Contains(string(v.Report), says) {
		t.Errorf("standby: %s", v.Report)
	}

	where := func(url, query string) (text string, settled bool) {
		t.Helper()
		s := of(url)
		sys, err := inspect.Open(s, inspect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close()
		found, err := sys.Find(t.Context(), inspect.ParseQuery(query), at.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		text, _, settled = cli.Where(s, found)
		return text, settled
	}
	for _, query := range []string{"behind", "logs/0/1"} {
		if text, settled := where(primary, query); !settled || strings.Contains(text, "standby") || !strings.Contains(text, "row: stored") {
			t.Errorf("primary, %s: %v\n%s", query, settled, text)
		}
		if text, settled := where(standby, query); settled || !strings.Contains(text, says) || strings.Contains(text, "never happen") {
			t.Errorf("standby, %s: %v\n%s", query, settled, text)
		}
	}
	for _, query := range []string{"there", "logs/0/0"} {
		if text, settled := where(standby, query); !settled || !strings.Contains(text, "row: stored") {
			t.Errorf("standby, %s: %v\n%s", query, settled, text)
		}
	}
	if text, _ := where(standby, "none"); !strings.Contains(text, "not known") || !strings.Contains(text, says) {
		t.Errorf("standby, an id that nothing has:\n%s", text)
	}

	// It is promoted right after it was asked.
	reading, err := store.Open(db.Config{URL: standby, StoreTimeout: time.Minute, ReadOnly: true}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reading.Close)
	look := inspect.Looking(of(standby), reading, inspect.Sight{})
	rows := look.Rows
	look.Rows = func(ctx context.Context, id string) ([]reader.Decision, error) {
		all, err := rows(ctx, id)
		return all, errors.Join(err, pair.Promote(t.Context()))
	}
	a := look.Find(t.Context(), "behind")
	if len(a.Rows) > 0 || !slices.ContainsFunc(a.NotLooked, func(g lookup.Gap) bool { return g.Rows && g.Why == says }) {
		t.Errorf("a standby that was promoted afterwards: %d rows, not searched: %v", len(a.Rows), a.NotLooked)
	}
	if a := inspect.Looking(of(standby), reading, inspect.Sight{}).Find(t.Context(), "there"); len(a.Rows) != 1 || slices.ContainsFunc(a.NotLooked, func(g lookup.Gap) bool { return g.Rows }) {
		t.Errorf("the server as a primary: %d rows, not searched: %v", len(a.Rows), a.NotLooked)
	}
}

// awaitAlone waits until the primary has no standby.
func awaitAlone(t *testing.T, primary string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, primary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	kafkatest.Eventually(t, "the primary is alone", func() bool {
		var names string
		if err := conn.QueryRow(ctx, `SHOW synchronous_standby_names`).Scan(&names); err != nil {
			t.Fatal(err)
		}
		return names == ""
	})
}
