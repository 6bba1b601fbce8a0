// Package e2e runs the very programs that are shipped against a real Kafka and a real Postgres, breaks what can break,
// and counts from the outside whether every decision that was produced has its home.
//
// Its tests carry the build tag integration and need a Docker engine; `make test` sets it up.
package e2e
