package columnar

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/record/subject"
)

// odd are columns that users add, some under names that the file needs.
func odd() []Column {
	return append(table(), Column{"tags", "text[]"}, Column{"price", "numeric(12,4)"}, Column{"doc", "json"}, Column{`odd " näme`, "bytea"}, Column{"Subject", "text"}, Column{"day", "date"}, Column{"DAY", "text"},
		Column{"docket_line", "text"}, Column{"flag", "boolean"}, Column{"n", "smallint"}, Column{"at", "timestamp with time zone"}, Column{"raw_without", "jsonb"}, Column{"Zone", "text"}, Column{"zone", "text"}, Column{"", "text"})
}

// value draws the JSON of a value of a type, as Postgres writes it and as nobody does.
func value(t *rapid.T, c Column) string {
	text := func(s string) string { return string(quoted(nil, []byte(s))) }
	switch kindOf(c.Type) {
	case asBool:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, c.Name)
	case asInt32, asInt64:
		return rapid.SampledFrom([]string{"0", "-1", "32767", "2147483647", "9223372036854775807", "-9223372036854775808", "007", "1e3", "99999999999999999999"}).Draw(t, c.Name)
	case asTime:
		return text(rapid.SampledFrom([]string{"2026-08-01T00:00:00+00:00", "2026-08-01T23:59:59.999999+00:00", "0044-03-15T00:00:00+00:00 BC", "infinity", "12026-01-01T00:00:00+00:00",
			"0001-01-01T00:00:00.1+00:00", "2026-08-01T00:00:00.10+00:00", "2026-13-41T25:61:61+00:00", "x026-08-01T00:00:00+00:00"}).Draw(t, c.Name))
	case asBytes:
		return rapid.SampledFrom([]string{`"\\x"`, `"\\x00ff"`, `"\\x00FF"`, `"\\x0"`, `"abc"`, `""`}).Draw(t, c.Name)
	case asJSON:
		return rapid.SampledFrom([]string{`null`, `{}`, `[]`, `"x"`, `1.50`, `{"a": 1}`, `{"a":1}`, `{"decision_id": "d", "path": "p"}`, `[{"path": "p"}]`, `{"text": "\u0001\\\"\n/"}`}).Draw(t, c.Name)
	}
	return text(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "NaN", "{a,NULL}", "a\u2028b\x7f", strings.Repeat("long ", 5000), "\b\f\n\r\t\"\\/", "\\N"})).Draw(t, c.Name))
}

// payload draws a payload whose members may equal columns, in the order of jsonb.
func payload(t *rapid.T, cells map[string]string, at int64) string {
	members := []string{`"z": 1`}
	maybe := func(name string, values ...string) {
		if rapid.Bool().Draw(t, "has "+name) {
			members = append(members, fmt.Sprintf(`"%s": %s`, name, rapid.SampledFrom(values).Draw(t, "member "+name)))
		}
	}
	or := func(name, other string) string {
		if v, ok := cells[name]; ok {
			return v
		}
		return other
	}
	maybe("path", or("path", `"p"`), `null`)
	maybe("input", `{"user": "u", "path": "x"}`, `[]`)
	maybe("labels", or("labels", `{}`), `{"id": "x"}`)
	maybe("req_id", or("req_id", `1`), `1.0`)
	maybe("bundles", or("bundles", `null`), `{"b": {"revision": "r1"}, "c": {}}`, `[1]`)
	nanos := rapid.IntRange(0, 999).Draw(t, "nanos")
	maybe("timestamp", string(quotedStamp(nil, at, 0)), string(quotedStamp(nil, at, nanos)), `"2026-08-01T00:00:00.000000000Z"`, `"2026-08-01T02:00:00+02:00"`, `1`, `"Z"`, `"2026-08-01T00:00:00.1234567890Z"`, `"2026-08-01T00:00:00.12345678xZ"`)
	maybe("decision_id", or("decision_id", `"d"`), `"other"`)
	maybe("requested_by", or("requested_by", `"10.0.0.1:5"`), `7`)
	if rapid.IntRange(0, 9).Draw(t, "order") == 0 { // as jsonb never has it
		slices.Reverse(members)
	}
	return rapid.SampledFrom([]string{"{" + strings.Join(members, ", ") + "}", "{" + strings.Join(members, ", ") + "}", "{" + strings.Join(members, ",") + "}", `[]`, `"text"`, `null`, `{}`}).Draw(t, "payload")
}

// TestRow_AnyComesBack: whatever the columns hold, each line comes back byte by byte, by reading all and by its id.
func TestRow_AnyComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		columns := odd()
		at := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		var all [][]byte
		for n := range rapid.IntRange(1, 8).Draw(rt, "rows") {
			at += int64(rapid.SampledFrom([]int{0, 1, 999_999, 1_000_000}).Draw(rt, "step"))
			cells := map[string]string{"decision_id": fmt.Sprintf(`"d%d %s`, n, value(rt, columns[0])[1:]), "ts": string(quotedTime(nil, at))}
			for _, c := range columns[2:] {
				if c.Name != "raw" && rapid.IntRange(0, 2).Draw(rt, "null") > 0 {
					cells[c.Name] = value(rt, c)
				}
			}
			if rapid.IntRange(0, 9).Draw(rt, "no payload") > 0 {
				cells["raw"] = payload(rt, cells, at)
			}
			line := []byte{'{'}
			for _, c := range columns {
				if v, ok := cells[c.Name]; ok {
					if len(line) > 1 {
						line = append(line, ',')
					}
					line = append(append(quoted(line, []byte(c.Name)), ':'), v...)
				}
			}
			all = append(all, append(line, '}'))
		}
		by := rapid.SampledFrom([]subject.Spec{byHost, {Kind: subject.RequestedBy}, {Kind: subject.DecisionID}, {Kind: subject.Input, Pointer: "/user"}, {Kind: subject.Label, Label: "id"}}).Draw(rt, "by")
		d := write(t, Options{Columns: columns, Subject: by, GroupRows: int64(rapid.IntRange(1, 4).Draw(rt, "group"))}, all)
		f := open(t, d)
		if !slices.Equal(f.Columns(), columns) {
			rt.Fatalf("%v", f.Columns())
		}
		names := map[string]bool{}
		for _, field := range f.layout.schema.Fields() {
			if name := strings.ToLower(field.Name()); names[name] || name == "" || name == "day" {
				rt.Fatalf("a name that an engine cannot tell from another: %q", field.Name())
			} else {
				names[name] = true
			}
		}
		n := 0
		err := f.Rows(t.Context(), nil, func(line []byte) error {
			if !bytes.Equal(line, all[n]) {
				rt.Fatalf("got\n%s, wrote\n%s", line, all[n])
			}
			n++
			return nil
		})
		if err != nil || n != len(all) {
			rt.Fatalf("%d of %d, %v", n, len(all), err)
		}
		var whole struct{ ID []byte }
		cells := make([][]byte, len(columns))
		for _, line := range all {
			if err := Split(line, len(columns), func(i int) string { return columns[i].Name }, cells); err != nil {
				rt.Fatal(err)
			}
			whole.ID = Text(cells[0])
			rows, err := f.Find(t.Context(), string(whole.ID))
			if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Line, line) {
				rt.Fatalf("%q: %d rows, %v", whole.ID, len(rows), err)
			}
		}
	})
}

// An ordinary row needs no line of its own, and its payload is short.
func TestRow_OrdinaryKeepsNoLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Columns: table(), Subject: byHost})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines(t, 500, 3) {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || w.Kept() != 0 {
		t.Fatalf("%d lines are kept, %v", w.Kept(), err)
	}
	f := open(t, &disk{data: out.Bytes()})
	err = f.column(f.view(t.Context()), f.groups[0], f.layout.raw, func(_ int64, v parquetValue) {
		for _, member := range repeated {
			if bytes.Contains(v.ByteArray(), []byte(`"`+member.member+`": "10.`)) || bytes.Contains(v.ByteArray(), []byte(`"decision_id": `)) {
				t.Errorf("%s was kept in the payload", member.member)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}
