// Package archivetest writes archives of decisions without a database, in the form that Postgres gives them.
package archivetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
)

// Table is the name of the table in these archives.
const Table = "decision_logs"

// Write archives decisions of one day, as a run of `docket archive` does, and returns the manifest. A later call for
// the day makes the next generation. It supersedes those whose rows it has. A file has at most partRows rows; a negative
// number of them writes gzip JSON lines, and 0 is the usual number.
func Write(ctx context.Context, shelf archive.Shelf, partRows int64, decisions ...reader.Decision) (*archive.Manifest, error) {
	return WriteWith(ctx, shelf, partRows, func(*archive.Carrier) {}, decisions...)
}

// WriteWith is [Write] with other settings.
func WriteWith(ctx context.Context, shelf archive.Shelf, partRows int64, change func(*archive.Carrier), decisions ...reader.Decision) (*archive.Manifest, error) {
	day := archive.DayOf(decisions[0].Time)
	all := slices.Clone(decisions)
	slices.SortFunc(all, func(a, b reader.Decision) int { return reader.SpotOf(a).Compare(reader.SpotOf(b)) })
	source := make([]byte, 3)
	_, _ = rand.Read(source) // never fails
	t := &table{rows: all, source: hex.EncodeToString(source)}
	c := archive.Carrier{Table: t, Shelf: shelf, Lines: partRows < 0, By: "mara", Docket: "test", PartRows: max(partRows, -partRows), Now: func() time.Time { return day.AddDate(0, 1, 0) }}
	change(&c)
	done, err := c.Archive(ctx, day, true)
	if err != nil {
		return nil, err
	}
	manifests, err := archive.Whole(ctx, shelf, Table, &day)
	for _, m := range manifests {
		if m.Name() == done.Archive {
			return m, err
		}
	}
	return nil, fmt.Errorf("archive %s is not there: %w", done.Archive, err)
}

// Line is the line of a decision, as Postgres writes it.
func Line(d reader.Decision) []byte {
	var b bytes.Buffer
	add := func(name string, value any) {
		text, err := json.Marshal(value)
		if raw, is := value.(json.RawMessage); is {
			text, err = raw, nil
		}
		if err == nil && string(text) != "null" {
			fmt.Fprintf(&b, `,%q:%s`, name, text)
		}
	}
	at := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999+00:00") }
	add("decision_id", d.ID)
	add("ts", at(d.Time))
	add("path", d.Path)
	add("allowed", d.Allowed)
	add("requested_by", d.RequestedBy)
	add("req_id", d.ReqID)
	add("opa_id", d.OPAID)
	add("opa_version", d.OPAVersion)
	add("service", d.Service)
	if d.Labels != nil {
		add("labels", d.Labels)
	}
	if d.Bundles != nil {
		add("bundles", d.Bundles)
	}
	add("raw", d.Raw)
	add("source_topic", d.Topic)
	add("source_partition", d.Partition)
	add("source_offset", d.Offset)
	add("source_index", d.Index)
	add("stored_at", at(d.StoredAt))
	add("edited_audit_id", d.EditedAuditID)
	if d.Unfaithful != nil {
		var texts []string
		for _, one := range d.Unfaithful {
			texts = append(texts, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(one)+`"`)
		}
		add("unfaithful", "{"+strings.Join(texts, ",")+"}")
	}
	add("uploaded_by", d.UploadedBy)
	b.WriteByte('}')
	line := b.Bytes()
	line[0] = '{'
	return line
}

// table has the rows of one day, and is that day.
type table struct {
	rows   []reader.Decision
	source string
}

func (t *table) Name() string { return Table }

func (t *table) Days(context.Context, archive.Day) ([]archive.Held, error) { return nil, nil }

func (t *table) Open(context.Context, archive.Day) (archive.OpenDay, error) { return t, nil }

func (t *table) Where(context.Context) (archive.Location, error) { return archive.Attached, nil }

func (t *table) Shape(context.Context) (archive.Shape, error) {
	var s archive.Shape
	for _, c := range [][2]string{
		{"decision_id", "text"}, {"ts", "timestamp with time zone"}, {"path", "text"}, {"allowed", "boolean"}, {"requested_by", "text"}, {"req_id", "bigint"}, {"opa_id", "text"},
		{"opa_version", "text"}, {"service", "text"}, {"labels", "jsonb"}, {"bundles", "jsonb"}, {"raw", "jsonb"}, {"source_topic", "text"}, {"source_partition", "integer"},
		{"source_offset", "bigint"}, {"source_index", "integer"}, {"stored_at", "timestamp with time zone"}, {"edited_audit_id", "bigint"}, {"unfaithful", "text[]"}, {"uploaded_by", "text"},
	} {
		s.Columns = append(s.Columns, archive.Column{Name: c[0], Type: c[1]})
	}
	return s, nil
}

func (t *table) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "3f9a2c", Partition: t.source}, nil
}

func (t *table) Settle(context.Context) error { return nil }

func (t *table) Read(_ context.Context, _ archive.Shape, each func(line []byte) error) (archive.Facts, error) {
	var facts archive.Facts
	for i, d := range t.rows {
		line := Line(d)
		facts.Total.Add(line)
		at := d.Time.UTC().Format("2006-01-02T15:04:05.999999+00:00")
		if facts.LastTS = at; i == 0 {
			facts.FirstTS = at
		}
		if err := each(line); err != nil {
			return facts, err
		}
	}
	return facts, nil
}

func (t *table) Sum(context.Context, archive.Shape) (archive.Total, error) {
	var total archive.Total
	for _, d := range t.rows {
		total.Add(Line(d))
	}
	return total, nil
}

func (t *table) Detach(context.Context, bool) error { return nil }

func (t *table) Late(context.Context, func(context.Context, map[archive.Identity]bool) error) error {
	return nil
}

func (t *table) Drop(context.Context, archive.Shape, archive.Total, archive.Needs) (bool, error) {
	return true, nil
}

func (t *table) Load(context.Context, []archive.Column, [][]byte) (archive.Loaded, error) {
	return archive.Loaded{}, nil
}

func (t *table) Tally(context.Context) error { return nil }

func (t *table) Left(context.Context) (*archive.Left, error) { return nil, nil }

func (t *table) Archived(context.Context) (bool, error) { return false, nil }

func (t *table) Forget(context.Context, string, string) error { return nil }

func (t *table) Close() {}
