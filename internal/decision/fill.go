package decision

import (
	"database/sql"
	"strings"
	"unsafe"
)

// fill sets what log takes from the draft by value or by reference.
func (d *draft) fill(s *scanner, log *Log) {
	log.ID = says(d.raw(s, fieldID)).V
	log.Path = says(d.raw(s, fieldPath))
	log.Service = service(log.Path.V)
	log.RequestedBy = says(d.raw(s, fieldRequestedBy))
	log.OPAID = says(d.opaID.raw(s.src))
	log.OPAVersion = says(d.opaVersion.raw(s.src))
	log.Labels = d.raw(s, fieldLabels)
	log.Bundles = d.raw(s, fieldBundles)
	log.Allowed = d.verdict(s)
}

// says is what a string literal says, invalid where the value is none. Without an escape it is the value's own bytes:
// nobody writes to those, and whoever keeps the string keeps the record alive by it, as with Raw.
func says(raw []byte) sql.Null[string] {
	if len(raw) == 0 || raw[0] != '"' {
		return sql.Null[string]{}
	}
	text := raw[1 : len(raw)-1]
	if hasEscape(text) {
		return sql.Null[string]{V: string(appendText(make([]byte, 0, len(text)), text)), Valid: true}
	}
	return sql.Null[string]{V: unsafe.String(unsafe.SliceData(text), len(text)), Valid: true}
}

// verdict is the result where it is a boolean, else what the result object says by one of two names.
func (d *draft) verdict(s *scanner) sql.Null[bool] {
	for _, v := range [...]span{d.values[fieldResult], d.allow, d.allowed} {
		switch string(v.raw(s.src)) {
		case "true":
			return sql.Null[bool]{V: true, Valid: true}
		case "false":
			return sql.Null[bool]{Valid: true}
		}
	}
	return sql.Null[bool]{}
}

// service is the first segment of a path that is not empty: OPA writes paths without a leading slash, some of those
// who call it do not.
func service(path string) sql.Null[string] {
	segment, _, _ := strings.Cut(strings.TrimLeft(path, "/"), "/")
	return sql.Null[string]{V: segment, Valid: segment != ""}
}
