// Package lanes shares the writers of a process among its lanes: urgent, default and bulk.
//
// Each lane is a topic with a group of its own. All of them write to one database, so one [Turns] grants the right to
// write. It keeps a reserve and a floor: urgent decisions never wait behind a backlog, and no lane starves.
// The package knows no clients and no records.
package lanes
