// Package tracing tells an OpenTelemetry collector what becomes of batches and of the records that need a second look.
//
// A batch is one span, whatever it holds; its writes, probes, publishes, holds and its commit are spans below it. Records
// that get their row at once have none: the batch's span links to the traces that they came from. A record that is forwarded,
// and one that is replayed, has a span of its own, in the trace that it came with, so that one trace tells of a decision from
// its producer to its row. All of it is bounded for each batch.
//
// An upload to the collector is one span, in the trace that it came with, and its records go on in it.
//
// Nothing here waits for a collector: spans that find no room are dropped. No key, value or header of a record, no text of a
// server and no address of one gets into a span. The package stays free of any way to change what happens.
package tracing
