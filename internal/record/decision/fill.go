package decision

import (
	"database/sql"
	"strings"
	"unsafe"
)

// fill sets what log takes from the draft by value or by reference.
func (d *draft) fill(s *scanner, log *Log) {
	log.ID = s.says(d.values[fieldID]).V
	log.Path = s.says(d.values[fieldPath])
	log.Service = service(log.Path.V)
	log.RequestedBy = s.says(d.values[fieldRequestedBy])
	log.OPAID = s.says(d.values[fieldOPAID])
	log.OPAVersion = s.says(d.values[fieldOPAVersion])
	log.Labels = d.raw(s, fieldLabels)
	log.Bundles = d.raw(s, fieldBundles)
	log.Allowed = d.verdict()
	if literal := d.raw(s, fieldReqID); literal != nil {
		log.ReqID.V, log.ReqID.Valid = parseInt(literal)
	}
}

// says is what a string literal says, invalid where the value is none. Without an escape it is the value's own bytes:
// nobody writes to those, and whoever keeps the string keeps the record alive by it, as with Raw.
func (s *scanner) says(v span) sql.Null[string] {
	if v.start == v.end || s.src[v.start] != '"' {
		return sql.Null[string]{}
	}
	text := s.src[v.start+1 : v.end-1]
	if s.escapes && hasEscape(text) {
		return sql.Null[string]{V: string(appendText(make([]byte, 0, len(text)), text)), Valid: true}
	}
	return sql.Null[string]{V: unsafe.String(unsafe.SliceData(text), len(text)), Valid: true}
}

// verdict is the result where it is a boolean, else what the result object says by one of two names.
func (d *draft) verdict() sql.Null[bool] {
	for _, f := range [...]field{fieldResult, fieldAllow, fieldAllowed} {
		if c := d.first[f]; c == 't' || c == 'f' {
			return sql.Null[bool]{V: c == 't', Valid: true}
		}
	}
	return sql.Null[bool]{}
}

// service is the first segment of a path that is not empty: OPA writes paths without a leading slash, some of those
// who call it do not.
func service(path string) sql.Null[string] {
	for path != "" && path[0] == '/' {
		path = path[1:]
	}
	segment, _, _ := strings.Cut(path, "/")
	return sql.Null[string]{V: segment, Valid: segment != ""}
}
