// Package browser drives the console with a real browser, beside the real programs, Kafka and Postgres.
//
// Chromium comes from Debian, see test/servers/chromium. axe-core is in testdata, so that a test needs no registry.
package browser
