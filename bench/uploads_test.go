package bench

import (
	"bytes"
	"testing"

	"docket/internal/record/decision"
)

func TestUploads_EachDecisionOnceInOPAsSize(t *testing.T) {
	t.Parallel()
	logs, err := Real(1, 4000)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []int{0, 5} {
		uploads, err := Uploads(logs, OPAUpload, each)
		if err != nil {
			t.Fatal(err)
		}
		next, ids := 0, map[string]bool{}
		for i, u := range uploads {
			record, refusal := decision.Decode(u.Body, 1<<30)
			if refusal != nil || len(record.Parts) != u.Decisions || each > 0 && u.Decisions != each {
				t.Fatalf("upload %d: %v, %d decisions and not %d", i, refusal, len(record.Parts), u.Decisions)
			}
			if n := len(u.Body); each == 0 && i > 2 && i < len(uploads)-1 && (n < OPAUpload/2 || n > OPAUpload*3/2) {
				t.Errorf("upload %d has %d bytes", i, n)
			}
			for _, part := range record.Parts {
				if part.Err != nil || !bytes.Equal(part.Value, logs[next]) {
					t.Fatalf("decision %d: %v", next, part.Err)
				}
				ids[part.Log.ID] = true
				next++
			}
		}
		if next != len(logs) || len(ids) != len(logs) {
			t.Errorf("%d decisions with %d ids, made of %d", next, len(ids), len(logs))
		}
	}
}
