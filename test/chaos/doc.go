// Package chaos is a campaign against the real programs on real parts: three brokers, a Postgres server or a primary
// with its synchronous standby, proxies between them, and faults by a seed, up to three at once and healed in any order,
// while records are produced. It ends with everything healed, and accounts for every decision from the outside.
//
// What this package holds without the tag integration is the plan of the faults and the closing table. It stays free of
// how the pipeline works: nothing here knows more of the programs than their settings, their topics, their table, their
// spool and what they say over HTTP.
package chaos
