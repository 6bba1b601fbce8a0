// Package desk opens, joins and closes the parts of `docket desk`: the readers of both dead-letter topics, the relay of the
// outbox, jobs, the schedule, alerts, the HTTP API, migrations and the watchdog.
//
// It does not know how a dead letter is retried or alerted: package worker does.
package desk
