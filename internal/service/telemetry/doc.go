// Package telemetry tells what happened, as metrics and as log lines, read off finished batches.
//
// It stays free of any way to change what happens. No label and no line comes from a payload or quotes a server.
package telemetry
