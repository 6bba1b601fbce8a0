// Package load runs scenarios of load on lanes and limits, each with its bounds: real programs on a real Kafka, Postgres
// and Redis.
//
// Here are the parts without servers: bounds, the count of grants in a sliding second, and the page. The scenarios are
// tests with the tag integration; `make load` runs them and writes docs/load.md.
package load
