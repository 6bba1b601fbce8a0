// Package testenv gives integration tests a real Kafka, Postgres and Redis in containers, shared by all tests of one
// test binary. It can pause, kill and restart them. Addresses are fixed for a server's lifetime, so a broker list or
// a DSN stays valid after every restart.
//
// It is built with the tag integration and imported by tests only. It imports nothing of Docket, so that every
// package may use it.
package testenv
