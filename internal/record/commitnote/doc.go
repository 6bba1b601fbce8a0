// Package commitnote has the text that a consumer commits to Kafka beside each offset (the metadata of a committed offset):
// which spools may have records. An offset is committed once its record has a home, and a spool is one. So whoever reads
// committed offsets reads in the same answer whether some of what lies below them is in a spool.
//
//	docket1 3f9a2c114f397d52.12884901889.1 88a1c0ffee21d0aa.4294967296.0 ?1764414000
//
// A spool has an id, a number, and 1 or 0: it may have records, or it has none. The number rises whenever the spool is
// opened, gets its first file or loses its last. The newest number of an id counts, in whichever partition it is committed.
//
// A member that takes over a partition carries on the notes that it finds there. So what is in the spool of a program
// that died stays known, until that spool is opened again and empty. A spool says so in the next commit of any
// partition that its program has. While it has none, others still carry that it may have records.
//
// A member may take over a partition whose offset has no note: programs of earlier releases write none, and who moves the
// offsets of a group removes them. Records from before may be in a spool that nobody names. So notes carry on the time
// at which that was last found, in Unix seconds.
package commitnote
