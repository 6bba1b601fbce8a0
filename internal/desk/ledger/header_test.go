package ledger_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"docket/internal/desk/ledger"
)

func TestHeader_AnyBytes(t *testing.T) {
	t.Parallel()
	headers := []ledger.Header{
		{Key: "plain", Value: []byte("x")},
		{Key: "", Value: nil},
		{Key: "empty", Value: []byte{}},
		{Key: "a\x00b", Value: []byte{0, 0xff}},
		{Key: "\xff\xfe", Value: []byte("y")},
		{Key: "�", Value: []byte("z")},
	}
	b, err := json.Marshal(headers)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(`\u0000`)) {
		t.Fatalf("jsonb cannot hold %s", b)
	}
	var back []ledger.Header
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(headers, back) {
		t.Fatalf("%q became %q by way of %s", headers, back, b)
	}
}
