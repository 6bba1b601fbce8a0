// Package e2e runs the shipped programs against a real Kafka and a real Postgres, and breaks all parts that can break. It
// counts from the outside whether every decision that was produced has its home.
//
// Its tests carry the build tag integration and need a Docker engine; `make test` sets it up.
package e2e
