// Package schema is the tables of Docket in Postgres: it brings them up to date, makes the partitions of the days ahead,
// makes indexes, and checks the database before it goes live. It stays free of what is stored in the tables.
//
// Migrations need a session of their own for an advisory lock. They need the server itself or a session pooler. A step that
// takes long locks in pieces: it waits 2 s at most for a lock, so that writers behind it do not wait for longer.
package schema
