// Package bench holds the measurements by which Docket's speed is judged: the real consumer between a real Kafka and a
// real Postgres, side by side with COPY and with a worker that inserts row by row. It stays free of figures: every
// figure that it prints was measured in the same run.
//
// Here are the parts without servers: options, decisions by seed, medians and the page. The measurements are tests with
// the tag integration; `make bench` runs them.
package bench
