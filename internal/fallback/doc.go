// Package fallback has the spool: the last home for records that could not be published to Kafka. It uses kgo.Record
// as data, and imports no Kafka client, Postgres or Prometheus.
//
// One Append makes one data file, and a second one for oversize lines. The file is a home only once nothing but the
// disk itself can lose it:
//
//	Append                                        a crash here leaves
//	  encode, gzip, checksum      in memory       nothing
//	  write, fsync, close         .<name>.….tmp   a tmp file, swept by Open
//	  rename meta, rename data    <name>.…        an orphan meta, or a whole file
//	  fsync the directory                         a whole file
//	  return nil                                  the home
//
// Recover reads the whole file and checks it, and publishes every line. Only after the last acknowledgement it
// removes the data, then the meta, and then syncs the directory. After an interruption it publishes again, so nothing
// is lost. The format is in docs/spool.md.
package fallback
