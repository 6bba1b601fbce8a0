package decision

import (
	"database/sql"
	"strings"
	"unsafe"
)

// fill sets the fields of log that are taken from the draft by value or by reference.
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

// says returns the text of a string literal, invalid for other values. Without an escape it shares the value's own
// bytes. These never change, but the string keeps the whole record in memory, as Raw does.
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

// verdict returns the result if that is a boolean, else one of two fields of the result object.
func (d *draft) verdict() sql.Null[bool] {
	for _, f := range [...]field{fieldResult, fieldAllow, fieldAllowed} {
		if c := d.first[f]; c == 't' || c == 'f' {
			return sql.Null[bool]{V: c == 't', Valid: true}
		}
	}
	return sql.Null[bool]{}
}

// service returns the first segment of a path that is not empty. OPA writes paths without a leading slash, some of
// its callers with one.
func service(path string) sql.Null[string] {
	for path != "" && path[0] == '/' {
		path = path[1:]
	}
	segment, _, _ := strings.Cut(path, "/")
	return sql.Null[string]{V: segment, Valid: segment != ""}
}
