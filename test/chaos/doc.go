// Package chaos is a campaign against the real programs on real parts: three brokers, a Postgres server or a primary
// with its synchronous standby, and proxies between them. A seed chooses the faults, up to three at once and healed in any
// order, while records are produced. The campaign ends with everything healed, and accounts for every decision from the
// outside.
//
// With lanes the records are spread over three topics by their key, and Redis counts limits. Lanes are asked for, like a
// standby, and not chosen by the seed: a seed without them keeps its plan.
//
// Without the tag integration this package is the plan of the faults and the closing table. It stays free of how the
// pipeline works: it knows only the settings, topics, table, spool and HTTP answers of the programs.
package chaos
