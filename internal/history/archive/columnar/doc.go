// Package columnar is the archive's format 2: rows of decision_logs in Parquet files. It writes rows as a stream, gives
// each back exactly as it was, and finds rows without reading a whole file.
//
// A row is a line here: the JSON object that the hash of an archive is made of. Each column of the table is a column
// of the file, so that other engines read the file as a table. The line is built again out of the columns. A row for
// which that does not give the same bytes keeps its line in a column of its own.
//
// It imports no SQL and no client of object storage.
package columnar
