package pgmodel

import (
	"bytes"
	"compress/flate"
	"fmt"
)

// maxIndexed is approximately the largest entry of a B-tree, after compression.
const maxIndexed = 2704 - 24

// fitsIndex refuses an id that is too long for the index. It is approximate, because a server compresses in another
// way.
func fitsIndex(id string) *failure {
	if len(id) <= maxIndexed {
		return nil
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		panic(fmt.Sprintf("pgmodel: %v", err)) // the level is a constant
	}
	_, _ = w.Write([]byte(id))
	_ = w.Close()
	if b.Len() <= maxIndexed {
		return nil
	}
	f := fail("54000", "index row size %d exceeds btree version 4 maximum 2704 for index %q", b.Len(), "decision_logs_pkey")
	f.detail = "Index row references tuple (0,1) in relation " + tableName + "."
	return f
}
