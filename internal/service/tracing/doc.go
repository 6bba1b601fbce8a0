// Package tracing sends spans about batches, and about records that need a second look, to an OpenTelemetry collector.
//
// A batch is one span, whatever it holds. Its writes, probes, publishes, holds and its commit are spans below it. Records
// that get their row at once have none: the batch's span links to the traces that they came from. A forwarded or replayed
// record has a span of its own, in the trace that it came with. So one trace follows a decision from its producer to its
// row. All of it is bounded for each batch.
//
// An upload to the collector is one span, in the trace that it came with. Its records continue that trace.
//
// Nothing here waits for a collector: spans that find no room are dropped. No key, value or header of a record gets into a
// span, and neither does a text or an address of a server. The package stays free of any way to change what happens.
package tracing
