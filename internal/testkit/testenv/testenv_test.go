//go:build integration

package testenv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const answerWait = 30 * time.Second // for one exchange with a server that is up

func TestKafka_ProduceAndConsume(t *testing.T) {
	t.Parallel()
	kafka := testenv.Kafka(t)
	topic := testenv.Prefix(t) + "records"
	kafka.CreateTopic(t, topic, 2, map[string]string{"max.message.bytes": "65536"})

	produce(t, kafka.Brokers(), topic, "first")

	if got := consume(t, kafka.Brokers(), topic, 1); got[0] != "first" {
		t.Fatalf("consumed %q, produced %q", got[0], "first")
	}
}

func TestKafka_KeepsAddressAndRecords(t *testing.T) {
	t.Parallel()
	kafka := testenv.OwnKafka(t)
	topic := testenv.Prefix(t) + "records"
	kafka.CreateTopic(t, topic, 1, nil)
	brokers := kafka.Brokers()

	for i, chaos := range []struct {
		name string
		do   func(testing.TB)
	}{
		{"kill and start", func(t testing.TB) {
			kafka.Kill(t)
			mustNotProduce(t, brokers, topic)
			kafka.Start(t)
		}},
		{"restart", kafka.Restart},
		{"pause and unpause", func(t testing.TB) {
			kafka.Pause(t)
			mustNotProduce(t, brokers, topic)
			kafka.Unpause(t)
		}},
	} {
		produce(t, brokers, topic, fmt.Sprintf("before %s", chaos.name))
		begin := time.Now()
		chaos.do(t)
		t.Logf("%s took %s", chaos.name, time.Since(begin).Round(time.Millisecond))
		produce(t, brokers, topic, fmt.Sprintf("after %s", chaos.name))

		got := consume(t, brokers, topic, 2*(i+1))
		if last := got[len(got)-2]; last != "before "+chaos.name {
			t.Fatalf("after %s the record before it reads %q", chaos.name, last)
		}
	}
}

func TestPostgres_SeparateDatabases(t *testing.T) {
	t.Parallel()
	postgres := testenv.Postgres(t)
	prepared := 0
	prepare := func(ctx context.Context, dsn string) error {
		prepared++
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, "CREATE TABLE seen (who text)")
		return err
	}
	one := postgres.DatabaseFrom(t, "seen", prepare)
	two := postgres.DatabaseFrom(t, "seen", prepare)

	exec(t, one, "INSERT INTO seen VALUES ('one')")

	if n := count(t, two); n != 0 {
		t.Errorf("a row of one database shows in another: %d", n)
	}
	if prepared != 1 {
		t.Errorf("prepared %d times, want once", prepared)
	}
	if empty := postgres.Database(t); empty == one || empty == two {
		t.Errorf("the same database twice: %s", empty)
	}
}

func TestPostgres_KeepsAddressAndRows(t *testing.T) {
	t.Parallel()
	postgres := testenv.OwnPostgres(t)
	dsn := postgres.Database(t)
	exec(t, dsn, "CREATE TABLE seen (who text)")

	for i, chaos := range []struct {
		name          string
		keepsSessions bool
		do            func(testing.TB)
	}{
		{"kill and start", false, func(t testing.TB) {
			postgres.Kill(t)
			mustNotConnect(t, dsn)
			postgres.Start(t)
		}},
		{"fast restart", false, func(t testing.TB) { postgres.Restart(t, testenv.Fast) }},
		{"immediate restart", false, func(t testing.TB) { postgres.Restart(t, testenv.Immediate) }},
		{"pause and unpause", true, func(t testing.TB) {
			postgres.Pause(t)
			mustNotConnect(t, dsn)
			postgres.Unpause(t)
		}},
	} {
		exec(t, dsn, "INSERT INTO seen VALUES ('before')")
		session := open(t, dsn)
		begin := time.Now()
		chaos.do(t)
		if err := session.Ping(t.Context()); (err == nil) != chaos.keepsSessions {
			t.Errorf("after %s an old session says %v", chaos.name, err)
		}
		t.Logf("%s took %s", chaos.name, time.Since(begin).Round(time.Millisecond))
		if n := count(t, dsn); n != i+1 {
			t.Fatalf("after %s: %d rows, want %d", chaos.name, n, i+1)
		}
	}
}

func produce(t testing.TB, brokers []string, topic, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	if err := tryProduce(ctx, t, brokers, topic, value); err != nil {
		t.Fatalf("produce %q: %v", value, err)
	}
}

func mustNotProduce(t testing.TB, brokers []string, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := tryProduce(ctx, t, brokers, topic, "lost"); err == nil {
		t.Fatal("a broker that is away took a record")
	}
}

func tryProduce(ctx context.Context, t testing.TB, brokers []string, topic, value string) error {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	defer cl.Close()
	return cl.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr()
}

// consume reads n records of a topic from its start.
func consume(t testing.TB, brokers []string, topic string, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	defer cl.Close()
	var values []string
	for len(values) < n {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records came: %q", len(values), n, values)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func mustNotConnect(t testing.TB, dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if conn, err := pgx.Connect(ctx, dsn); err == nil {
		_ = conn.Close(ctx)
		t.Fatal("a server that is away took a connection")
	}
}

func exec(t testing.TB, dsn, statement string) {
	t.Helper()
	with(t, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement)
		return err
	})
}

func count(t testing.TB, dsn string) (n int) {
	t.Helper()
	with(t, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM seen").Scan(&n)
	})
	return n
}

func with(t testing.TB, dsn string, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	if err := do(ctx, open(t, dsn)); err != nil {
		t.Fatalf("ask: %v", err)
	}
}

// open returns a session that lasts as long as the test, unless it is cut.
func open(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
