package columnar

import (
	"bytes"
	"database/sql"
	"strings"

	"github.com/parquet-go/parquet-go"

	"docket/internal/record/decision"
	"docket/internal/record/subject"
	"docket/internal/record/verdict"
)

// derive sets the columns that the table does not have. raw is the whole payload; nil: there is none.
func (w *Writer) derive(row []parquet.Value, s *shortened, raw []byte) {
	l := w.layout
	var allowed sql.Null[bool]
	if l.allowed >= 0 && !row[l.allowed].IsNull() {
		allowed = sql.Null[bool]{V: row[l.allowed].Boolean(), Valid: true}
	}
	row[l.added[Verdict]] = text(string(verdict.From(allowed, s.hasError, s.result)))
	if raw == nil {
		return
	}
	if who, ok := w.subjectOf(row, s, raw); ok {
		row[l.added[Subject]] = text(who)
	}
	if r := w.revisionsOf.of(s.bundles); r != "" {
		row[l.added[Revision]] = text(r)
	} else if s.revision != "" {
		row[l.added[Revision]] = text(s.revision)
	}
}

// subjectOf returns the subject. If the member was left out, the column has it.
func (w *Writer) subjectOf(row []parquet.Value, s *shortened, raw []byte) (string, bool) {
	host := w.subject.Kind == subject.RequestedByHost
	if !s.has[requestedByMember] || !host && w.subject.Kind != subject.RequestedBy {
		return w.subject.Of(raw)
	}
	whole := string(row[w.layout.members[requestedByMember]].ByteArray())
	if host {
		whole = subject.Host(whole)
	}
	return whole, whole != ""
}

// revisions keeps the revision of bundles that were seen. There are few.
type revisions map[string]string

const mostRevisions = 1000

// of lists bundles in one line: name@revision. It is empty if there are none.
func (r revisions) of(bundles []byte) string {
	if len(bundles) == 0 {
		return ""
	}
	if text, ok := r[string(bundles)]; ok {
		return text
	}
	var all []string
	for in := decision.Into(bundles, 0); in.Next() && !in.Array(); {
		name := decision.Text(bundles[in.Start : bytes.LastIndexByte(bundles[:in.Value], '"')+1])
		all = append(all, strings.TrimPrefix(name+"@"+revision(bundles[in.Value:in.End]), "@"))
	}
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "@")
	}
	text := strings.Join(all, ", ")
	if len(r) < mostRevisions && len(bundles) < 1<<16 {
		r[string(bundles)] = text
	}
	return text
}

func revision(bundle []byte) (text string) {
	for in := decision.Into(bundle, 0); in.Next() && !in.Array(); {
		if !in.Is("revision") {
			continue
		}
		switch v := bundle[in.Value:in.End]; v[0] {
		case '"':
			text = decision.Text(v)
		case 'n', '{', '[':
		default:
			text = string(v)
		}
	}
	return text
}
