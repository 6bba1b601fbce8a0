package decision

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"docket/sample"
)

// standard reads a decision again, with encoding/json and package time only.
func standard(value []byte) (Log, error) {
	var top map[string]json.RawMessage // names match exactly, and the last of equal names wins
	if err := json.Unmarshal(value, &top); err != nil {
		return Log{}, err
	}
	log := Log{Raw: value, ID: stringIn(top, "decision_id").V, Path: stringIn(top, "path"), RequestedBy: stringIn(top, "requested_by")}
	at := strings.ToUpper(stringIn(top, "timestamp").V)
	leap := strings.Contains(at, ":59:60")
	if leap {
		at = strings.Replace(at, ":60", ":59", 1)
	}
	parsed, err := time.Parse(time.RFC3339Nano, at)
	if leap {
		parsed = parsed.Add(time.Second)
	}
	log.Time = parsed.UTC().Truncate(time.Microsecond)
	for _, segment := range strings.Split(log.Path.V, "/") {
		if segment != "" {
			log.Service = some(segment)
			break
		}
	}
	log.ReqID = valueIn[int64](top, "req_id")
	if labels := objectIn(top, "labels"); labels != nil {
		log.Labels = top["labels"]
		log.OPAID, log.OPAVersion = stringIn(labels, "id"), stringIn(labels, "version")
	}
	if objectIn(top, "bundles") != nil {
		log.Bundles = top["bundles"]
	}
	result := objectIn(top, "result")
	for _, allowed := range []sql.Null[bool]{valueIn[bool](top, "result"), valueIn[bool](result, "allow"), valueIn[bool](result, "allowed")} {
		if !log.Allowed.Valid {
			log.Allowed = allowed
		}
	}
	return log, err
}

func valueIn[T any](object map[string]json.RawMessage, name string) sql.Null[T] {
	var v *T
	if err := json.Unmarshal(object[name], &v); err != nil || v == nil {
		return sql.Null[T]{}
	}
	return some(*v)
}

func stringIn(object map[string]json.RawMessage, name string) sql.Null[string] {
	return valueIn[string](object, name)
}

func objectIn(object map[string]json.RawMessage, name string) map[string]json.RawMessage {
	return valueIn[map[string]json.RawMessage](object, name).V
}

// checkDecision compares an accepted part with the second reading.
func checkDecision(t *testing.T, part Part, value []byte) {
	t.Helper()
	if part.Err != nil {
		t.Fatalf("refused: %v", part.Err)
	}
	if !json.Valid(value) || !utf8.Valid(value) {
		t.Fatalf("taken, but not JSON: %q", value)
	}
	checkTwin(t, part.Log)
	want, err := standard(part.Log.Raw)
	if err != nil {
		t.Fatalf("taken, but read otherwise as %v: %q", err, value)
	}
	checkPieces(t, part.Log)
	if part.Log.Unfaithful != nil && !bytes.Equal(part.Log.Came(), value) {
		t.Fatalf("%q came, and is kept as %q", value, part.Log.Came())
	}
	part.Log.Pieces, part.Log.Unfaithful = nil, nil
	if diff := cmp.Diff(want, part.Log, fields); diff != "" {
		t.Fatalf("%q: -standard +ours\n%s", value, diff)
	}
}

func seed(f *testing.F) {
	for i, line := range sample.DecisionLogs() {
		if i%200 == 0 && len(line) < 2000 {
			f.Add(line)
		}
	}
	two := good() + "\n" + good(`"path":null,"req_id":5`)
	for _, value := range []string{
		"", " ", "[]", "null", "3", "[" + good() + "," + good(`"a":{"a":1,"a":[1e5,-0.5]}`) + "]", two, "x\n" + two, "[x\n" + two, "[]\n" + two, "[" + good() + "\n," + good() + "\n]",
		"[\n" + good() + "\n,\n" + good(), "\ufeff" + two,
		good(`"labels":{"id":"a","version":"\ud83d\ude00"}`, `"bundles":{}`, `"result":{"allow":1,"allowed":true}`, `"path":"/a/b"`),
		good(`"decision\u005fid":1`), good(`"a":"\u0000"`), good(`"a":"\ud800"`), good(`"a":1e-20000`), good(`"req_id":9223372036854775808`),
		`{"timestamp":"2016-12-31T18:59:60.5-05:00","decision_id":"d"}`, `{"timestamp":"2016-12-31t18:59:59,5z","decision_id":"d"}`,
		string(zip(f, two)), string(zip(f, "")),
	} {
		f.Add([]byte(value))
	}
}

// FuzzDecode: no input panics, and accepted input is JSON with the meaning that encoding/json gives it. An accepted
// part gives the same Log when it is decoded alone, as after it was forwarded.
func FuzzDecode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		record, refusal := Decode(value, limit)
		if refusal != nil {
			if len(record.Parts) > 0 || record.Sole || refusal.Reason == "" {
				t.Fatalf("refused, %v, yet %d parts", refusal, len(record.Parts))
			}
			return
		}
		if len(record.Parts) == 0 || record.Sole != (len(record.Parts) == 1) {
			t.Fatalf("%d parts, sole %v", len(record.Parts), record.Sole)
		}
		plain := trim(record.Plain)
		if array := json.Valid(plain) && plain[0] == '['; len(record.Parts) > 1 && OnLines(record.Plain) == array {
			t.Fatalf("on lines %v, but the value is one array: %v", !array, array)
		}
		rest := value
		for i, part := range record.Parts {
			if part.Index != i || len(part.Value) == 0 || len(trim(part.Value)) != len(part.Value) {
				t.Fatalf("part %d: index %d, value %q", i, part.Index, part.Value)
			}
			if !IsGzip(value) {
				at := bytes.Index(rest, part.Value)
				if at < 0 {
					t.Fatalf("part %d is not in the record where it should be", i)
				}
				rest = rest[at+len(part.Value):]
			}
			if part.Err != nil {
				if part.Log.ID != "" || part.Log.Raw != nil || part.Err.Offset > len(part.Value) || part.Err.Offset < 0 {
					t.Fatalf("part %d: refused, %+v, with log %+v", i, part.Err, part.Log)
				}
				continue
			}
			checkDecision(t, part, part.Value)
			again, refusal := Decode(part.Value, limit)
			if refusal != nil || len(again.Parts) != 1 {
				t.Fatalf("part %d alone: %v", i, refusal)
			}
			if diff := cmp.Diff(part.Log, again.Parts[0].Log, fields); diff != "" {
				t.Fatalf("part %d alone: %s", i, diff)
			}
		}
	})
}

// FuzzSyntax: as a member of a decision, a value is a syntax error exactly if it is one for encoding/json or is not
// UTF-8.
func FuzzSyntax(f *testing.F) {
	for _, value := range []string{
		`0`, `-0.5e+10`, `01`, `1.`, `"a\u00e9\n"`, `"\ud800"`, "\"\xff\"", `[1,{"a":[]},null,true,false]`, `[1,]`, `{"a"}`, `1,"b":2`, `"\x"`,
		`1e-20000`, "\"12345678\x1f\"", "\"1234567é\"", ` [ ] `, `1}`, "1\n", "1\n}",
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, member []byte) {
		value := good(`"x":[` + string(member) + `]`)
		_, refusal := Decode([]byte(value), limit)
		bad := refusal != nil && refusal.Reason == Syntax
		if good := json.Valid([]byte(value)) && utf8.ValidString(value); good == bad {
			t.Fatalf("%q: refused %v, while encoding/json and UTF-8 say %v", value, refusal, good)
		}
	})
}
