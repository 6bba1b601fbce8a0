// Package desk is what `docket desk` opens, joins and closes: the readers of both dead-letter topics, the relay of the
// outbox, jobs, the schedule, alerts, the HTTP API, migrations and the watchdog.
//
// It stays free of what becomes of a dead letter: that is told in package desk.
package desk
