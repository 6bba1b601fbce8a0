// Package demo shows Docket at work with nothing set up: a stand-in for Kafka in the process, a real Postgres that it
// fetches and starts itself, decision logs with bad ones among them, an outage in the middle, and at the end the
// account of where every decision is.
//
// It starts the real programs through [Config.Launch] and knows them by their settings, their metrics and what they
// leave behind, as any user does. It stays free of how they are built.
package demo
