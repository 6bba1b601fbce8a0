// Package demo runs Docket without any set-up. It has an in-process stand-in for Kafka and a real Postgres that it fetches and
// starts. It sends real decision logs with bad ones among them, with an outage in the middle. It ends with the account of every
// decision, checks that the ledger holds every dead letter, and prints commands to query the data.
//
// It starts the consumer, the replayer and the desk through [Config.Launch]. It knows them by their settings, their
// metrics and the data they write, as any user does, and imports none of their wiring.
package demo
