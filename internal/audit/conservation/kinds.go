package conservation

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// The planted failure codes, as in a forwarded record.
const (
	codeEmpty        = "empty"
	codeSyntax       = "syntax"
	codeDuplicateKey = "duplicate_key"
	codeMissingField = "missing_field"
	codeWrongType    = "wrong_type"
	codeOutOfRange   = "out_of_range"
	codeTooLarge     = "too_large"
	codeCheck        = "23514"
	codeConflict     = "id_conflict"
)

// kind is a kind of record to plant.
type kind struct {
	name string
	make func(*Generator) Record
}

// kinds returns all kinds, also those that are not faults.
func kinds() []kind {
	return slices.Concat(undecodable(), refused(), unfaithful(), mixed(), repeated())
}

// undecodable are whole records that cannot be read as decisions.
func undecodable() []kind {
	whole := func(name, code string, value func(g *Generator) []byte) kind {
		return kind{name, func(g *Generator) Record {
			id, _ := g.identity()
			v := value(g)
			return Record{Key: []byte(id), Value: v, Decisions: []Decision{{Body: v, Code: code}}}
		}}
	}
	text := func(name, code, value string) kind {
		return whole(name, code, func(*Generator) []byte { return []byte(value) })
	}
	return []kind{
		whole("tombstone", codeEmpty, func(*Generator) []byte { return nil }),
		text("empty value", codeEmpty, ""),
		text("blank value", codeEmpty, " \n\t "),
		text("empty array", codeEmpty, "[]"),
		whole("cut off", codeSyntax, func(g *Generator) []byte { b := g.good().Body; return b[:len(b)*2/3] }),
		whole("byte-order mark", codeSyntax, func(g *Generator) []byte { return append([]byte("\xef\xbb\xbf"), g.good().Body...) }),
		whole("trailing bytes", codeSyntax, func(g *Generator) []byte { return append(g.good().Body, " tail"...) }),
		whole("invalid UTF-8", codeSyntax, func(g *Generator) []byte { return g.decide("\"note\":\"\xff\xfe\",", "").Body }),
		whole("broken gzip", codeSyntax, func(g *Generator) []byte { b := g.compress(g.good().Body); return b[:len(b)-9] }),
		whole("broken array", codeSyntax, func(g *Generator) []byte {
			return fmt.Appendf(nil, "[%s,%s", g.good().Body, g.good().Body)
		}),
		text("not an object", codeWrongType, `"a decision"`),
		whole("too large", codeTooLarge, (*Generator).bomb),
	}
}

// bomb is small in Kafka and inflates beyond the reader's limit.
func (g *Generator) bomb() []byte {
	if g.huge == nil {
		g.huge = g.compress(append(g.decide("", "").Body, bytes.Repeat([]byte(" "), int(g.cfg.MaxRecordBytes))...))
	}
	return slices.Clone(g.huge)
}

// refused are decisions that are valid JSON and cannot be stored.
func refused() []kind {
	member := func(name, code, front string) kind {
		return kind{name, func(g *Generator) Record { return g.single(g.decide(front, code)) }}
	}
	bare := func(name, code, format string) kind {
		return kind{name, func(g *Generator) Record { return g.single(g.bare(code, format)) }}
	}
	return []kind{
		member("duplicate key", codeDuplicateKey, `"decision_id":"another",`),
		bare("no decision_id", codeMissingField, `{"path":"a/b","timestamp":"%[2]s","was":"%[1]s"}`),
		bare("empty decision_id", codeMissingField, `{"decision_id":"","timestamp":"%[2]s","was":"%[1]s"}`),
		bare("no timestamp", codeMissingField, `{"decision_id":"%[1]s","was":"%[2]s"}`),
		bare("timestamp of another format", codeWrongType, `{"decision_id":"%[1]s","timestamp":"yesterday","was":"%[2]s"}`),
		bare("path is a number", codeWrongType, `{"decision_id":"%[1]s","timestamp":"%[2]s","path":7}`),
		bare("req_id is text", codeWrongType, `{"decision_id":"%[1]s","timestamp":"%[2]s","req_id":"7"}`),
		bare("labels are a list", codeWrongType, `{"decision_id":"%[1]s","timestamp":"%[2]s","labels":["a"]}`),
		bare("U+0000 in decision_id", codeOutOfRange, `{"decision_id":"%[1]s\u0000","timestamp":"%[2]s"}`),
		bare("lone surrogate in decision_id", codeOutOfRange, `{"decision_id":"%[1]s\ud800","timestamp":"%[2]s"}`),
		member("refused by the table", codeCheck, `"`+RefusedMember+`":true,`),
	}
}

// bare makes a decision without a sample; the format gets id and time.
func (g *Generator) bare(code, format string) Decision {
	id, at := g.identity()
	return Decision{ID: id, Time: at, Body: fmt.Appendf(nil, format, id, at.Format("2006-01-02T15:04:05.999999999Z07:00")), Code: code}
}

// mixed are records with a bad decision among good ones.
func mixed() []kind {
	return []kind{
		{"bad element of an array", func(g *Generator) Record {
			return g.array(g.good(), g.bare(codeMissingField, `{"was":"%s %s"}`), g.good())
		}},
		{"element that the table refuses", func(g *Generator) Record {
			return g.compressed(g.array(g.good(), g.good(), g.decide(`"`+RefusedMember+`":true,`, codeCheck)))
		}},
		{"bad line", func(g *Generator) Record {
			return g.lines(g.good(), g.bare(codeSyntax, `{"decision_id":"%s","timestamp":"%s"`), g.good())
		}},
		{"line that the table refuses", func(g *Generator) Record {
			return g.lines(g.decide(`"`+RefusedMember+`":true,`, codeCheck), g.good())
		}},
	}
}

// unfaithful are decisions that jsonb cannot hold unchanged. Each still has its row.
func unfaithful() []kind {
	member := func(name, front string) kind {
		return kind{name, func(g *Generator) Record { return g.single(g.decide(front, "")) }}
	}
	return []kind{
		member("U+0000", `"note":"a\u0000b",`),
		member("lone surrogate", `"note":"\ud800",`),
		member("number beyond numeric", `"note":1e200000,`),
		member("numbers of many digits", `"note":[1e30000,1e30000,1e30000],`),
		{"req_id beyond 64 bits", func(g *Generator) Record {
			d := g.bare("", `{"decision_id":"%[1]s","timestamp":"%[2]s","req_id":9223372036854775808}`)
			d.Time = d.Time.Truncate(time.Microsecond)
			return g.single(d)
		}},
		{"duplicate of a twin", func(g *Generator) Record {
			d := g.decide(`"note":"\u0000",`, "")
			return g.array(d, d)
		}},
		{"two that have one twin", func(g *Generator) Record {
			a := g.decide(`"note":"\u0000",`, "")
			b := a
			b.Body = bytes.Replace(a.Body, []byte(`\u0000`), []byte(`\ud800`), 1)
			return g.array(a, b)
		}},
	}
}

// repeated are decisions that were produced before, with an equal or another payload.
func repeated() []kind {
	return []kind{
		{"duplicate", func(g *Generator) Record { return g.remember() }},
		{"compressed duplicate", func(g *Generator) Record { return g.compressed(g.remember()) }},
		{"duplicate inside a record", func(g *Generator) Record {
			d := g.good()
			return g.array(d, g.good(), d)
		}},
		{"id conflict", func(g *Generator) Record {
			r := g.remember()
			d := r.Decisions[0]
			d.Body = append([]byte(`{"note":"another payload",`), d.Body[1:]...)
			return Record{Key: r.Key, Value: d.Body, Decisions: []Decision{d}}
		}},
	}
}

// remember takes an earlier ordinary record of one decision, each once.
func (g *Generator) remember() Record {
	if len(g.past) == 0 {
		return g.single(g.good())
	}
	r := g.past[0]
	g.past = slices.Delete(g.past, 0, 1)
	return r
}
