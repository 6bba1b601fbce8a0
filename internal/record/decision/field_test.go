package decision

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fields compares logs without their computed hash.
var fields = cmpopts.IgnoreUnexported(Log{})

func some[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }

func TestFields_AreRead(t *testing.T) {
	t.Parallel()
	const raw = `{ "labels" : {"id":"o","version":"1.22.0"}, "decision_id":"d\u00e9\n", "path":"a/b", "bundles":{"x":{"revision":"1"}},` +
		`"timestamp":"2026-11-21T04:00:39.819149999+02:00","requested_by":"127.0.0.1:5","req_id":-7,"result":true,"new":[1]}`
	got := only(t, raw).Log
	got.Pieces = nil // see checkPieces
	want := Log{
		ID: "dé\n", Time: time.Date(2026, 11, 21, 2, 0, 39, 819149000, time.UTC),
		Path: some("a/b"), Service: some("a"), RequestedBy: some("127.0.0.1:5"), OPAID: some("o"), OPAVersion: some("1.22.0"),
		Allowed: some(true), ReqID: some(int64(-7)),
		Labels: []byte(`{"id":"o","version":"1.22.0"}`), Bundles: []byte(`{"x":{"revision":"1"}}`), Raw: []byte(raw),
	}
	if diff := cmp.Diff(want, got, fields); diff != "" {
		t.Error(diff)
	}
	if got.Time.Location() != time.UTC {
		t.Errorf("the time is in %v", got.Time.Location())
	}
}

func TestFields_NullIsAbsent(t *testing.T) {
	t.Parallel()
	null := good(`"path":null,"requested_by":null,"req_id":null,"labels":null,"bundles":null,"result":null`)
	for _, value := range []string{good(), null} {
		got := only(t, value)
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		want := Log{ID: "d1", Time: time.Date(2026, 11, 21, 2, 0, 39, 819149000, time.UTC), Raw: []byte(value)}
		got.Log.Pieces = nil // see checkPieces
		if diff := cmp.Diff(want, got.Log, fields); diff != "" {
			t.Error(diff)
		}
		if got.Log.Labels != nil || got.Log.Bundles != nil {
			t.Error("labels or bundles is empty, not nil")
		}
	}
}

func TestFields_MissingAndMistyped(t *testing.T) {
	t.Parallel()
	const id, at = `"decision_id":"d"`, `"timestamp":"2026-11-21T02:00:39Z"`
	for _, c := range []struct {
		value, field string
		want         Reason
	}{
		{`{}`, "decision_id", MissingField},
		{`{` + at + `}`, "decision_id", MissingField},
		{`{"decision_id":null,` + at + `}`, "decision_id", MissingField},
		{`{"decision_id":"",` + at + `}`, "decision_id", MissingField},
		{`{"Decision_ID":"d",` + at + `}`, "decision_id", MissingField},
		{`{` + id + `}`, "timestamp", MissingField},
		{`{` + id + `,"timestamp":null}`, "timestamp", MissingField},
		{`{` + id + `,"input":{` + at + `}}`, "timestamp", MissingField},
		{`{` + id + `,"timestamp":""}`, "timestamp", WrongType},
		{`{` + id + `,"timestamp":1732154400}`, "timestamp", WrongType},
		{`{` + id + `,"timestamp":"yesterday"}`, "timestamp", WrongType},
		{`{"decision_id":5,` + at + `}`, "decision_id", WrongType},
		{`{"decision_id":["d"],` + at + `}`, "decision_id", WrongType},
		{good(`"path":5`), "path", WrongType},
		{good(`"path":["a","b"]`), "path", WrongType},
		{good(`"requested_by":false`), "requested_by", WrongType},
		{good(`"req_id":"5"`), "req_id", WrongType},
		{good(`"req_id":1.0`), "req_id", WrongType},
		{good(`"req_id":1e3`), "req_id", WrongType},
		{good(`"req_id":1E400000`), "req_id", WrongType},
		{good(`"req_id":true`), "req_id", WrongType},
		{good(`"req_id":[]`), "req_id", WrongType},
		{good(`"labels":"x"`), "labels", WrongType},
		{good(`"labels":[]`), "labels", WrongType},
		{good(`"bundles":1`), "bundles", WrongType},
		{good(`"bundles":[{}]`), "bundles", WrongType},
	} {
		got := only(t, c.value).Err
		if got == nil || got.Reason != c.want || got.Field != c.field {
			t.Errorf("%s: got %v, want %s in %s", c.value, got, c.want, c.field)
		}
	}
}

func TestFields_ReqID(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1, "-1": -1, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	} {
		if got := only(t, good(`"req_id":`+literal)); got.Err != nil || got.Log.ReqID != some(want) {
			t.Errorf("%s: got %v, %v", literal, got.Log.ReqID, got.Err)
		}
	}
	for _, literal := range []string{
		"9223372036854775808", "-9223372036854775809", "9999999999999999999", "18446744073709551616",
		"-18446744073709551617", "100000000000000000000000000000",
	} {
		if got := only(t, good(`"req_id":`+literal)); got.Err != nil || got.Log.ReqID.Valid || got.Log.Unfaithful != nil {
			t.Errorf("%s: got %v, %v, %v; want none, and that nothing differs", literal, got.Log.ReqID, got.Err, got.Log.Unfaithful)
		}
	}
}

func TestFields_Allowed(t *testing.T) {
	t.Parallel()
	none := sql.Null[bool]{}
	for result, want := range map[string]sql.Null[bool]{
		`true`: some(true), `false`: some(false), `null`: none, `1`: none, `0.5`: none, `"true"`: none,
		`[]`: none, `[true]`: none, `[{"allow":true}]`: none, `{}`: none, `{"x":true}`: none, `{"Allow":true}`: none,
		`{"allow":true}`: some(true), `{"allow":false}`: some(false), `{"allowed":true}`: some(true), `{"allowed":false}`: some(false),
		`{"allowed":true,"allow":false}`: some(false), `{"allow":true,"allowed":false}`: some(true),
		`{"allow":"yes","allowed":false}`: some(false), `{"allow":null,"allowed":true}`: some(true), `{"allow":{"allow":true}}`: none,
		`{"allow":false,"allow":true}`: some(true), `{"allow":true,"allow":"no"}`: none, `{"allow":true,"allow":1,"allowed":false}`: some(false),
		`{"\u0061llow":true}`: some(true), `{ "a" : [ {} ] , "allow" : true }`: some(true), `{"x":{"allow":true}}`: none,
	} {
		if got := only(t, good(`"result":`+result)); got.Err != nil || got.Log.Allowed != want {
			t.Errorf("%s: got %v, %v; want %v", result, got.Log.Allowed, got.Err, want)
		}
	}
	if got := only(t, good(`"allow":true`)).Log.Allowed; got != none {
		t.Errorf("allow outside of the result: got %v", got)
	}
}

func TestFields_OPA(t *testing.T) {
	t.Parallel()
	none := sql.Null[string]{}
	for labels, want := range map[string][2]sql.Null[string]{
		`{}`:                       {none, none},
		`{"id":"a","version":"1"}`: {some("a"), some("1")},
		`{"version":"1"}`:          {none, some("1")},
		`{"id":"","version":null}`: {some(""), none},
		`{"id":5,"version":["1"]}`: {none, none},
		`{"ID":"a"}`:               {none, none},
		`{"id":"a","id":"b"}`:      {some("b"), none},
		`{"id":"a","id":5}`:        {none, none},
		`{"i\u0064":"\u0061\\"}`:   {some(`a\`), none},
		`{"x":{"id":"deep"},"version":"\ud83d\uDE00"}`: {none, some("😀")},
	} {
		got := only(t, good(`"labels":`+labels))
		if got.Err != nil || got.Log.OPAID != want[0] || got.Log.OPAVersion != want[1] || string(got.Log.Labels) != labels {
			t.Errorf("%s: got %v %v %s %v", labels, got.Log.OPAID, got.Log.OPAVersion, got.Log.Labels, got.Err)
		}
	}
}

func TestFields_Service(t *testing.T) {
	t.Parallel()
	none := sql.Null[string]{}
	for path, want := range map[string]sql.Null[string]{
		"": none, "/": none, "//": none, "a": some("a"), "a/": some("a"), "a/b/c": some("a"), "/a/b": some("a"), "//a//b": some("a"), " /a": some(" "),
	} {
		got := only(t, good(`"path":"`+path+`"`)).Log
		if got.Service != want || got.Path != some(path) {
			t.Errorf("%q: got service %v, path %v", path, got.Service, got.Path)
		}
	}
	if got := only(t, good(`"path":"\u0061\/b"`)).Log; got.Service != some("a") || got.Path != some("a/b") {
		t.Errorf("escaped: got service %v, path %v", got.Service, got.Path)
	}
}

func TestDecode_DoesNotWriteTheRecord(t *testing.T) {
	t.Parallel()
	for _, form := range []string{good(`"path":"\u0061\/b"`, `"labels":{"id":"\n"}`), "[" + good() + ",7]", good() + "\n{\n" + good()} {
		value := []byte(form)
		_, _ = Decode(value, limit)
		if string(value) != form {
			t.Errorf("%q became %q", form, value)
		}
	}
}

func TestDecoder_StringsOutliveIt(t *testing.T) {
	t.Parallel()
	var d Decoder
	d.Begin(1)
	record, _ := d.Decode([]byte(good(`"path":"a/b","requested_by":"\u0061/b"`)), limit)
	log := record.Parts[0].Log
	d.Begin(1)
	if _, refusal := d.Decode([]byte(good(`"path":"c/d","requested_by":"\u0063/d"`)), limit); refusal != nil {
		t.Fatal(refusal)
	}
	if log.ID != "d1" || log.Path.V != "a/b" || log.Service.V != "a" || log.RequestedBy.V != "a/b" {
		t.Errorf("got %+v after the decoder went on", log)
	}
}
