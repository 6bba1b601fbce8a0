package bench

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Peer is a worker of others, whose sources and settings are in a folder of peers.
type Peer struct {
	Folder string
	Name   string  // on the page
	Times  float64 // how many times its rate Docket's should be
	Ends   []int   // exit codes after SIGTERM, but 0
	What   string  // a note for the reader of its line
	// Placeless says that the worker cannot have the partition and the offset of a record, so its rows do not say where they came from.
	Placeless bool
	// TextJSON says that the worker cannot write jsonb, so that its table has columns of json, which check the text and keep it.
	TextJSON bool
}

// terminated is what a shell says of a process that SIGTERM ended, and what a JVM ends with after its shutdown hooks.
const terminated = 128 + 15

var peers = []Peer{
	{Folder: "spring", Name: "Spring Boot, spring-kafka", Times: 3, Ends: []int{terminated}, What: "batch listener, JdbcTemplate.batchUpdate"},
	{Folder: "debezium", Name: "Debezium JDBC sink on Kafka Connect", Times: 4.5, Ends: []int{terminated}, What: "unnest, upsert, with a transformation made for it"},
	{Folder: "redpanda", Name: "stand-in for Redpanda Connect", Times: 4.5, What: "its engine with an input and an output of our own, as the Redpanda Connect module could not be had"},
	{Folder: "telegraf", Name: "Telegraf", Times: 1.5, Placeless: true, TextJSON: true, What: "COPY; one record that cannot be stored loses its whole batch"},
	{Folder: "flink", Name: "Apache Flink", Times: 3, Ends: []int{terminated}, What: "JDBC sink, offsets with each checkpoint"},
}

// PeerIn is the peer of a folder.
func PeerIn(folder string) (Peer, bool) {
	for _, p := range peers {
		if p.Folder == folder {
			return p, true
		}
	}
	return Peer{}, false
}

// JDBC is the address of a database as Java wants it, from the one that Go has: address, user and password.
func JDBC(dsn string) (address, user, password string, err error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" || u.User == nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "", "", "", errors.New("the database's address is no URL with a user in it") // without the URL, which has a password
	}
	password, _ = u.User.Password()
	return "jdbc:postgresql://" + u.Host + u.Path, u.User.Username(), password, nil
}

// PeerEnv are the settings with which a peer is started.
type PeerEnv struct {
	Brokers             []string
	Topic, Group        string
	DSN                 string
	Built, Folder, Addr string // the program, a folder for the worker's own files, an address to listen on if it wants one
}

// Settings are the variables of the environment, as peers/README.md lists them.
func (e PeerEnv) Settings() ([]string, error) {
	address, user, password, err := JDBC(e.DSN)
	if err != nil {
		return nil, fmt.Errorf("settings of a peer: %w", err)
	}
	return []string{
		"PEER_BROKERS=" + strings.Join(e.Brokers, ","), "PEER_TOPIC=" + e.Topic, "PEER_GROUP=" + e.Group, "PEER_DATABASE_URL=" + e.DSN,
		"PEER_JDBC_URL=" + address, "PEER_DB_USER=" + user, "PEER_DB_PASSWORD=" + password,
		"PEER_BUILT=" + e.Built, "PEER_DIR=" + e.Folder, "PEER_ADDR=" + e.Addr,
	}, nil
}
