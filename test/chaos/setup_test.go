//go:build integration

package chaos

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/conservation"
	"docket/internal/testkit/testenv"
)

const (
	role           = "docket"
	password       = "planted-password-that-no-log-may-have"
	maxRecordBytes = 1 << 20         // DOCKET_MAX_RECORD_BYTES
	longestPause   = 2 * time.Second // between two replays of a parked record
	session        = "6s"
)

// setUp starts the parts, makes topics and table, and starts the programs.
func (c *campaign) setUp(t *testing.T) {
	t.Helper()
	c.wires = newWires()
	c.startPostgres(t)
	c.cluster = testenv.OwnCluster(t)
	c.places = conservation.Places{
		Brokers: c.cluster.Direct(), DatabaseURL: c.database.url(),
		Topic: "decision-logs", Group: "docket", ParkingTopic: "decision-logs-parking", ParkingGroup: "docket-parking",
		DLQTopic: "decision-logs-dlq", ParkingDLQ: "decision-logs-parking-dlq",
	}
	topics := map[string]int32{c.places.Topic: 6, c.places.DLQTopic: 3, c.places.ParkingTopic: 4, c.places.ParkingDLQ: 2}
	c.addLanes(t, topics)
	for topic, partitions := range topics {
		check(t, c.cluster.CreateTopic(t.Context(), topic, partitions, map[string]string{"min.insync.replicas": "2"}))
	}
	c.makeTable(t)
	check(t, c.wires.connect(c.cluster, asRole(t, c.places.DatabaseURL)))
	redis := c.startRedis(t)
	var err error
	c.load, err = newLoad(c)
	check(t, err)
	c.makeSlots(t, redis)
	t.Cleanup(c.close)
	for _, s := range slices.Concat(c.slots[:members], c.desks()) {
		check(t, s.start())
	}
	starting, cancel := context.WithTimeout(t.Context(), 2*settleBase) // a machine may be busy
	defer cancel()
	if err := again(starting, func() error { return c.unsettled(starting) }); err != nil || !c.clean() {
		t.Fatalf("the programs do not start: %v; logs are in %s/logs", err, c.dir)
	}
	c.say("three brokers, Postgres and %d processes are up", members+len(c.desks()))
}

// startPostgres starts the one server, or a primary that waits for its standby.
func (c *campaign) startPostgres(t *testing.T) {
	t.Helper()
	settings := []string{"max_connections=80", "superuser_reserved_connections=20", "max_wal_size=256MB"}
	if c.standby {
		c.pair = testenv.OwnPostgresPair(t, testenv.PairOptions{Settings: settings, Binds: c.disks.binds, Before: c.wires.join})
		check(t, c.pair.Synchronous(t.Context()))
		c.database.lead(writable(c.pair.Primary.URL("postgres")))
		return
	}
	binds, err := c.disks.binds(0)
	check(t, err)
	c.postgres = testenv.OwnPostgresWith(t, testenv.PostgresOptions{Settings: settings, Binds: binds})
	c.database.lead(writable(c.postgres.URL("postgres")))
}

// primary has the verbs of the server that takes writes.
func (c *campaign) primary() testenv.Handle {
	if c.pair != nil {
		return c.pair.Primary.Handle()
	}
	return c.postgres.Handle()
}

// makeTable migrates, and gives the table a constraint that no decoder knows. It puts the table on the disk that can be
// full, and makes the role that the programs have.
func (c *campaign) makeTable(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.bin, "consumer"), "migrate")
	cmd.Env = append(os.Environ(), "DOCKET_DATABASE_URL="+c.places.DatabaseURL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("consumer migrate: %v\n%s", err, out)
	}
	statements := []string{
		conservation.RefuseSQL,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password),
		fmt.Sprintf("GRANT SELECT, INSERT ON decision_logs TO %s", role),
	}
	if c.disks.mounted {
		servers := []testenv.Handle{c.primary()}
		if c.pair != nil {
			servers = append(servers, c.pair.Standby.Handle())
		}
		for _, server := range servers {
			check(t, server.Run(t.Context(), "chown", "postgres:postgres", tableFolder))
		}
		statements = append(statements,
			"CREATE TABLESPACE limited LOCATION '"+tableFolder+"'",
			// The table and its partitions, of which the default one is the pattern of those to come.
			`DO $$ DECLARE part regclass; kind text; BEGIN
				FOR part, kind IN SELECT relid, 'TABLE' FROM pg_partition_tree('decision_logs') UNION ALL SELECT indexrelid, 'INDEX'
				       FROM pg_partition_tree('decision_logs') JOIN pg_index ON indrelid = relid LOOP
					EXECUTE format('ALTER %s %s SET TABLESPACE limited', kind, part);
				END LOOP;
			END $$`,
		)
	}
	for _, sql := range statements {
		check(t, c.database.exec(t.Context(), sql))
	}
}

// makeSlots makes a place for every process: the members, two more that come and go, and the desks. All have more
// settings.
func (c *campaign) makeSlots(t *testing.T, more []string) {
	t.Helper()
	var brokers []string
	for i := range c.cluster.Size() {
		brokers = append(brokers, c.cluster.Advertised(i))
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir,
		"DOCKET_KAFKA_BROKERS=" + strings.Join(brokers, ","), "DOCKET_DATABASE_URL=" + c.wires.databaseURL,
		"DOCKET_KAFKA_SESSION_TIMEOUT=" + session, "DOCKET_KAFKA_REBALANCE_TIMEOUT=60s",
		"DOCKET_RETRY_PAUSES=200ms,400ms", "DOCKET_STORE_TIMEOUT=3s", "DOCKET_PROBE_INTERVAL=300ms",
		"DOCKET_PARKING_BACKOFF=500ms", "DOCKET_PARKING_MAX_BACKOFF=" + longestPause.String(),
		"DOCKET_BATCH_MAX_RECORDS=200", "DOCKET_BATCH_MAX_BYTES=1MiB", "DOCKET_PUBLISH_TIMEOUT=4s",
		"DOCKET_MAX_RECORD_BYTES=1MiB", "DOCKET_SHUTDOWN_TIMEOUT=20s", "DOCKET_SPOOL_MAX_BYTES=64MiB",
	}
	env = append(env, more...)
	for i := range members + joiners {
		program := "consumer"
		if i >= Consumers && i < members || i == members+1 {
			program = "parking-replayer"
		}
		spool, err := c.disks.spool(i)
		check(t, err)
		s := &slot{campaign: c, number: i, program: program, spool: spool, name: fmt.Sprintf("%s-%d", program, i)}
		s.addr, err = testenv.FreeAddr()
		check(t, err)
		s.env = append(append([]string{}, env...), "DOCKET_SPOOL_DIR="+spool, "DOCKET_HTTP_ADDR="+s.addr)
		c.slots = append(c.slots, s)
		c.places.SpoolDirs = append(c.places.SpoolDirs, spool)
	}
	if !c.standby {
		c.makeDesks(t, env)
	}
}

// writable is the database for the campaign itself, whatever fault is under way.
func writable(database string) string {
	return database + "&default_transaction_read_only=off&connect_timeout=5"
}

// hog is the name under which the campaign itself takes connections away from the programs.
const hog = "hog"

// asRole is the database for the programs.
func asRole(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	check(t, err)
	u.User, u.RawQuery = url.UserPassword(role, password), "sslmode=disable"
	return u.String()
}

// asHog is the database with the rights of the programs, for the campaign itself.
func asHog(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = url.UserPassword(role, password), "sslmode=disable&application_name="+hog
	return u.String()
}
