package decision

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/sample"
)

// typical is a typical decision log: 650 bytes, compact, a few names without a column.
const typical = `{"labels":{"app":"opa","id":"00000011-1d3c-4f0e-9a3b-000000000001","version":"1.4.2"},"decision_id":"4ca636c1-55e4-417a-b1d8-4aceb67960d1",` +
	`"bundles":{"authz":{"revision":"W3sibCI6InN5cy9jYXRhbG9nIiwicyI6NDA3MX1d"}},"path":"http/authz/allow","input":{"method":"GET",` +
	`"path":["finance","salary","alice"],"user":"user-17","note":"a \"quoted\" word"},"result":{"allow":true,"reasons":["owner"]},` +
	`"requested_by":"10.0.7.19:53022","timestamp":"2026-11-20T12:07:09.123456Z","metrics":{"counter_server_query_cache_hit":1,` +
	`"timer_rego_input_parse_ns":12345,"timer_rego_query_eval_ns":67890,"timer_server_handler_ns":123456},"req_id":17,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}`

//nolint:paralleltest // it measures what is the whole process's
func TestDecoder_NoAllocations(t *testing.T) {
	made := Benchmarked()
	values := append(made[:200:200], []byte(typical))
	var d Decoder
	pieces := 0
	batch := func() {
		d.Begin(len(values))
		for _, value := range values {
			record, refusal := d.Decode(value, limit)
			if refusal != nil {
				t.Fatal(refusal)
			}
			pieces += len(record.Parts[0].Log.Pieces)
		}
	}
	for range 5 { // shapes are learned, and memory is allocated
		batch()
	}
	if got := testing.AllocsPerRun(10, batch); got != 0 || pieces == 0 {
		t.Errorf("%v allocations for %d decisions, %d pieces", got, len(values), pieces)
	}
}

// TestDecoder_RecordsAreIndependent has every form follow every other, with too little room.
func TestDecoder_RecordsAreIndependent(t *testing.T) {
	t.Parallel()
	values := []string{
		typical, "", "[", "[]", `{"a":1,"a":2}`, "[" + typical + ",7," + good(`"path":"\u0061"`) + "]", good() + "\n{\n" + good(), `{"` + strings.Repeat(`a":[{"`, 40),
		good(`"x":"\u0000"`), good(`"req_id":"a"`), good(`"req_id":1e2`), "{\"a\u0062\":1,\"ab\":2}", strings.Repeat("{}\n", 50), string(zip(t, good())),
	}
	for _, line := range sample.DecisionLogs()[:20] {
		values = append(values, string(line))
	}
	var d Decoder
	d.Begin(10)
	var all []Record
	for _, first := range values {
		for _, second := range values {
			for _, value := range []string{first, second} {
				got, refused := d.Decode([]byte(value), limit)
				want, wantRefused := Decode([]byte(value), limit)
				if diff := differ(want, got) + differ(wantRefused, refused); diff != "" {
					t.Fatalf("%.80q after %.80q: %s", second, first, diff)
				}
				all = append(all, got)
			}
		}
	}
	i := 0
	for _, first := range values { // later records have changed nothing
		for _, second := range values {
			for _, value := range []string{first, second} {
				want, _ := Decode([]byte(value), limit)
				if diff := differ(want, all[i]); diff != "" {
					t.Fatalf("record %d changed: %s", i, diff)
				}
				i++
			}
		}
	}
}

// differ is cmp.Diff only for different values, because cmp.Diff takes a thousand times as long.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, fields)
}

func TestDecoder_FreesAnUncommonRecord(t *testing.T) {
	t.Parallel()
	var d Decoder
	d.Begin(10)
	if _, refusal := d.Decode([]byte(strings.Repeat("{}\n", MaxDecisions)), limit); refusal != nil {
		t.Fatal(refusal)
	}
	if d.Begin(10); cap(d.scanner.parts) > mostKept {
		t.Errorf("room for %d parts is kept", cap(d.scanner.parts))
	}
}

func BenchmarkTypical(b *testing.B) {
	value := []byte(typical)
	var d Decoder
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%5000 == 0 {
			d.Begin(5000)
		}
		if _, refusal := d.Decode(value, 1<<30); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
