package cold

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"docket/internal/history/reader"
	"docket/internal/record/decision"
	"docket/internal/record/verdict"
)

// errLine says that a line is not a row as [docket/internal/history/archive] writes it. It quotes nothing.
var errLine = errors.New("a line is not a row of decision_logs")

// row is a line whose columns are not decoded yet. A missing column is NULL.
type row map[string]json.RawMessage

// columnNames are the columns that a decision is made of, in the order of the table.
var columnNames = []string{
	"decision_id", "ts", "path", "allowed", "requested_by", "req_id", "opa_id", "opa_version", "service", "labels", "bundles", "raw",
	"source_topic", "source_partition", "source_offset", "source_index", "stored_at", "edited_audit_id", "unfaithful", "uploaded_by",
}

// parseRow finds the columns of a line. They are valid as long as the line is.
func parseRow(line []byte, into row) error {
	clear(into)
	in := decision.Into(line, 0)
	next := 0
	for in.Next() {
		for i := range columnNames { // a line has them in the same order, so the first guess is mostly right
			if n := (next + i) % len(columnNames); in.Is(columnNames[n]) {
				into[columnNames[n]], next = line[in.Value:in.End], n+1
				break
			}
		}
	}
	if in.Torn() || in.Array() {
		return errLine
	}
	return nil
}

func (r row) decode(name string, to any) error {
	raw, there := r[name]
	if !there {
		return nil
	}
	if json.Unmarshal(raw, to) != nil {
		return errLine
	}
	return nil
}

// time returns ts in UTC.
func (r row) time() (time.Time, error) {
	text := string(r["ts"])
	t, err := time.Parse(`"`+time.RFC3339Nano+`"`, text)
	if err != nil {
		return t, errLine
	}
	return t.UTC(), nil
}

// decision decodes all columns but the payload's copy; Raw, Labels and Bundles are valid as long as the line is.
func (r row) decision() (reader.Decision, error) {
	var d reader.Decision
	var unfaithful *string
	at, err := r.time()
	errs := []error{err}
	for name, to := range map[string]any{
		"decision_id": &d.ID, "path": &d.Path, "service": &d.Service, "allowed": &d.Allowed, "requested_by": &d.RequestedBy, "req_id": &d.ReqID, "opa_id": &d.OPAID,
		"opa_version": &d.OPAVersion, "source_topic": &d.Topic, "source_partition": &d.Partition, "source_offset": &d.Offset, "source_index": &d.Index,
		"stored_at": &d.StoredAt, "uploaded_by": &d.UploadedBy, "edited_audit_id": &d.EditedAuditID, "unfaithful": &unfaithful,
	} {
		errs = append(errs, r.decode(name, to))
	}
	if err := errors.Join(errs...); err != nil || d.ID == "" {
		return d, errLine
	}
	d.Time, d.StoredAt = at, d.StoredAt.UTC()
	d.Labels, d.Bundles, d.Raw = r["labels"], r["bundles"], r["raw"]
	if unfaithful != nil {
		if d.Unfaithful, err = parseTexts(*unfaithful); err != nil {
			return d, err
		}
	}
	d.Verdict = verdictOf(d)
	return d, nil
}

// verdictOf is the verdict that the table computes for the row. The payload is read only if allowed is NULL.
func verdictOf(d reader.Decision) reader.Verdict {
	if d.Allowed != nil {
		return verdict.From(sql.Null[bool]{V: *d.Allowed, Valid: true}, false, false)
	}
	var hasError, hasResult bool
	for in := decision.Into(d.Raw, 0); in.Next(); {
		there := !bytes.Equal(d.Raw[in.Value:in.End], []byte("null"))
		switch {
		case in.Is("error"):
			hasError = there
		case in.Is("result"):
			hasResult = there
		}
	}
	return verdict.From(sql.Null[bool]{}, hasError, hasResult)
}

// owned returns a copy that outlives the line, without its payload unless that is asked for.
func owned(d reader.Decision, payload bool) reader.Decision {
	d.Labels, d.Bundles = bytes.Clone(d.Labels), bytes.Clone(d.Bundles)
	if payload {
		d.Raw = bytes.Clone(d.Raw)
	} else {
		d.Raw = nil
	}
	return d
}

// parseTexts reads an array of texts as Postgres writes it: {a,"b c","d\"e"}.
func parseTexts(text string) ([]string, error) {
	inside, ok := strings.CutPrefix(text, "{")
	inside, ended := strings.CutSuffix(inside, "}")
	if !ok || !ended {
		return nil, errLine
	}
	all := []string{}
	for inside != "" {
		var one strings.Builder
		i, quoted := 0, inside[0] == '"'
		if quoted {
			i++
		}
		for ; i < len(inside); i++ {
			c := inside[i]
			if c == '\\' && i+1 < len(inside) {
				i++
				one.WriteByte(inside[i])
				continue
			}
			if quoted && c == '"' || !quoted && c == ',' {
				break
			}
			one.WriteByte(c)
		}
		if quoted {
			if i == len(inside) {
				return nil, errLine
			}
			i++
		}
		all = append(all, one.String())
		if i == len(inside) {
			return all, nil
		}
		if inside[i] != ',' || i+1 == len(inside) {
			return nil, errLine
		}
		inside = inside[i+1:]
	}
	return all, nil
}
