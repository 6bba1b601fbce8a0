package bench

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestJDBC_UserApart(t *testing.T) {
	t.Parallel()
	address, user, password, err := JDBC("postgres://bench:a%2Fb@127.0.0.1:5433/logs?sslmode=disable")
	if err != nil || address != "jdbc:postgresql://127.0.0.1:5433/logs" || user != "bench" || password != "a/b" {
		t.Errorf("%s as %s with %s, %v", address, user, password, err)
	}
}

func TestJDBC_RefusesWithoutThePassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"", "host=x password=hush", "mysql://u:hush@x/db", "postgres://127.0.0.1/db", "postgres://u:hush@x:port/db"} {
		if _, _, _, err := JDBC(dsn); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", dsn, err)
		}
		if _, err := (PeerEnv{DSN: dsn}).Settings(); err == nil {
			t.Errorf("%q: settings were made", dsn)
		}
	}
}

func TestPeers_Settings(t *testing.T) {
	t.Parallel()
	got, err := PeerEnv{Brokers: []string{"a:1", "b:2"}, Topic: "t", Group: "g", DSN: "postgres://u:p@h:5/d", Built: "/built", Folder: "/own", Addr: "h:9"}.Settings()
	want := []string{
		"PEER_BROKERS=a:1,b:2", "PEER_TOPIC=t", "PEER_GROUP=g", "PEER_DATABASE_URL=postgres://u:p@h:5/d", "PEER_JDBC_URL=jdbc:postgresql://h:5/d",
		"PEER_DB_USER=u", "PEER_DB_PASSWORD=p", "PEER_BUILT=/built", "PEER_DIR=/own", "PEER_ADDR=h:9",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestPeers_Complete(t *testing.T) {
	t.Parallel()
	if len(Peers()) != len(peers) {
		t.Errorf("%v can be chosen, and there are %d", Peers(), len(peers))
	}
	for _, folder := range Peers() {
		p, ok := PeerIn(folder)
		if !ok || p.Name == "" || p.Times <= 1 {
			t.Errorf("%s: %+v", folder, p)
		}
		for _, script := range []string{"build", "start"} {
			info, err := os.Stat("peers/" + folder + "/" + script)
			if err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s of %s cannot be run: %v", script, folder, err)
			}
		}
	}
}
