package columnar

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table has the columns of decision_logs.
func table() []Column {
	var all []Column
	for _, c := range strings.Split("decision_id text,ts timestamp with time zone,path text,allowed boolean,requested_by text,req_id bigint,opa_id text,opa_version text,service text,labels jsonb,bundles jsonb,"+
		"raw jsonb,source_topic text,source_partition integer,source_offset bigint,source_index integer,stored_at timestamp with time zone,raw_bytes bytea,unfaithful text[],raw_sha256 bytea,"+
		"uploaded_by text,edited_audit_id bigint", ",") {
		name, typ, _ := strings.Cut(c, " ")
		all = append(all, Column{name, typ})
	}
	return all
}

// jsonb prints JSON as Postgres prints jsonb.
func jsonb(t testing.TB, text []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	printed(&b, v)
	return b.String()
}

func printed(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.Write(quoted(nil, []byte(name)))
			b.WriteString(": ")
			printed(b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			printed(b, e)
		}
		b.WriteByte(']')
	case string:
		b.Write(quoted(nil, []byte(v)))
	default:
		fmt.Fprint(b, map[any]string{nil: "null"}[v], v)
	}
}

// lines makes rows of decisions as the bench makes them, in a topic of so many partitions.
func lines(t testing.TB, n, partitions int) [][]byte {
	t.Helper()
	d := bench.NewDecisions(1, time.Date(2026, 8, 1, 3, 0, 0, 0, time.UTC))
	offsets := make([]int64, partitions)
	var all [][]byte
	for range n {
		one := d.Next()
		h := fnv.New32a()
		_, _ = h.Write(one.Key)
		p := int(h.Sum32() % uint32(partitions))
		all = append(all, lineOf(t, one.Value, p, offsets[p]))
		offsets[p]++
	}
	return all
}

// lineOf is the line of a decision.
func lineOf(t testing.TB, value []byte, partition int, offset int64) []byte {
	t.Helper()
	var log struct {
		ID        string          `json:"decision_id"`
		TS        time.Time       `json:"timestamp"`
		Path      string          `json:"path"`
		Requested string          `json:"requested_by"`
		ReqID     int64           `json:"req_id"`
		Labels    json.RawMessage `json:"labels"`
		Result    any             `json:"result"`
	}
	if err := json.Unmarshal(value, &log); err != nil {
		t.Fatal(err)
	}
	allowed, ok := log.Result.(bool)
	if o, is := log.Result.(map[string]any); is {
		allowed, ok = o["allow"].(bool)
	}
	b := fmt.Appendf(nil, `{"decision_id":%s,"ts":%s,"path":%s`, quoted(nil, []byte(log.ID)), quotedTime(nil, log.TS.UnixMicro()), quoted(nil, []byte(log.Path)))
	if ok {
		b = fmt.Appendf(b, `,"allowed":%t`, allowed)
	}
	service, _, _ := strings.Cut(log.Path, "/")
	b = fmt.Appendf(b, `,"requested_by":%s,"req_id":%d,"opa_id":"5bf7d126-339c-49a0-aabe-d960791bad7f","opa_version":"1.22.0","service":"%s","labels":%s,"raw":%s`,
		quoted(nil, []byte(log.Requested)), log.ReqID, service, jsonb(t, log.Labels), jsonb(t, value))
	stored := log.TS.Add(time.Second).Truncate(100 * time.Millisecond).Add(time.Duration(partition)*7*time.Millisecond + 123*time.Microsecond)
	return fmt.Appendf(b, `,"source_topic":"decision-logs","source_partition":%d,"source_offset":%d,"source_index":0,"stored_at":%s,"raw_sha256":"\\x%x"}`,
		partition, offset, quotedTime(nil, stored.UnixMicro()), sha256.Sum256(value))
}
