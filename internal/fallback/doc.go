// Package fallback holds the spool: the home of last resort for records that
// could not be published to Kafka. It knows kgo.Record as data and stays free
// of kgo.Client, Postgres and Prometheus.
//
// One Append makes one data file (and one more when some of its lines are
// oversize), and is a home only once nothing but the disk itself can lose it:
//
//	Append                                        a crash here leaves
//	  encode, gzip, checksum      in memory       nothing
//	  write, fsync, close         .<name>.….tmp   a tmp file, swept by Open
//	  rename meta, rename data    <name>.…        an orphan meta, or a whole file
//	  fsync the directory                         a whole file
//	  return nil                                  the home
//
// Recover goes the other way: read the whole file and judge it, publish every
// line, and only after the last acknowledgement unlink data, then meta, then
// fsync the directory. Whatever is interrupted is published again; nothing is
// forgotten. docs/spool.md has the format.
package fallback
