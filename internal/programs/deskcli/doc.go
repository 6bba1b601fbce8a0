// Package deskcli is the command line of docket: it lists, explains, retries, edits and resolves dead letters, looks after
// jobs, and hands the commands that all programs have to internal/programs/cli.
//
// It stays free of Postgres and of Kafka: what it works on is handed in by main, as are the terminal, the clock and the
// editor. It keeps no state of a package: every call of [Main] makes its commands anew.
package deskcli
