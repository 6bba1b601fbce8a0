// Package app is what both programs open, join and close: the source, the pipeline of every partition, the spool's
// recovery, migrations, HTTP and the watchdog.
//
// It stays free of anything that concerns a batch: how one is carried is told in package pipeline.
package app
