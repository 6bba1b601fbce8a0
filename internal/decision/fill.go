package decision

import (
	"database/sql"
	"strings"
)

// fill sets what log takes from the draft by value or by reference. All strings share one copy of their bytes.
func (d *draft) fill(s *scanner, log *Log) {
	texts := [...]span{
		d.values[fieldID], d.values[fieldPath], d.values[fieldRequestedBy], d.opaID, d.opaVersion,
	}
	var ends [len(texts)]int
	var room [512]byte
	buf := room[:0]
	for i, v := range texts {
		if raw := v.raw(s.src); raw != nil && raw[0] == '"' {
			buf = appendText(buf, raw[1:len(raw)-1])
		}
		ends[i] = len(buf)
	}
	all := string(buf)
	get := func(i int) sql.Null[string] {
		raw := texts[i].raw(s.src)
		if raw == nil || raw[0] != '"' {
			return sql.Null[string]{}
		}
		return sql.Null[string]{V: all[ends[i-1]:ends[i]], Valid: true}
	}
	log.ID = all[:ends[0]]
	log.Path = get(1)
	log.Service = service(log.Path.V)
	log.RequestedBy = get(2)
	log.OPAID = get(3)
	log.OPAVersion = get(4)
	log.Labels = d.raw(s, fieldLabels)
	log.Bundles = d.raw(s, fieldBundles)
	log.Allowed = d.verdict(s)
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
