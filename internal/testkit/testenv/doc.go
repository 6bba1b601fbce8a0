// Package testenv gives integration tests a real Kafka and a real Postgres in
// containers, shared by all tests of one test binary, and the verbs to hurt
// them: pause, kill, restart. Addresses are fixed for a server's lifetime, so a
// broker list or a DSN stays valid through every restart.
//
// It is built with the tag integration and imported by tests only. It stays free
// of anything of Docket itself, so that every room may use it.
package testenv
