package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// Foresee says which rows a CHECK of this name would refuse: their positions, in order. It is a hint of where to look
// first and proves nothing. Nothing is foreseen (nil) where there is no such CHECK, or one that cannot be evaluated
// beside the table: of the whole row, of a column that Docket does not fill. It takes at most a quarter of the store timeout.
//
// The server evaluates the expression of the constraint over the columns that it refers to, in a transaction that can
// write nothing. No other column is sent. Its text is asked for each time, so none is ever out of date.
func (st *Store) Foresee(ctx context.Context, rows []pipeline.Row, constraint string) (refused []int, err error) {
	if len(rows) == 0 || constraint == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, st.Timeout()/4) // it is no more than a hint
	defer cancel()
	err = st.Connected(ctx, false, func(ctx context.Context, pg *pgconn.PgConn) error {
		return transact(ctx, pg, func(t *transaction) (err error) {
			refused, err = foresee(t, rows, constraint)
			if err == nil {
				t.rollback()
			}
			return err
		})
	})
	if err != nil {
		return nil, db.Clean("foresee refusals", err) // and not noted: an error of an expression says nothing of the node
	}
	return refused, nil
}

func foresee(t *transaction, rows []pipeline.Row, constraint string) (refused []int, err error) {
	var f foresight
	err = t.ask(checkSQL, [][]byte{[]byte(constraint)}, func(values [][]byte) error {
		if len(values) != 4 {
			return errclass.As(&db.AnswerError{Problem: "the catalog answered in another form than asked for"}, errclass.CodeProtocol)
		}
		f.add(string(values[0]), string(values[1]), string(values[2]))
		return nil
	})
	if err != nil || len(f.terms) == 0 || f.blind {
		return nil, err
	}
	for from := 0; from < len(rows); {
		n := f.portion(rows[from:])
		if refused, err = f.look(t, rows[from:from+n], from, refused); err != nil {
			return nil, err
		}
		from += n
	}
	slices.Sort(refused)
	return refused, nil
}

// foresight is a CHECK that is evaluated beside its table: once for the table, or for each partition that has it.
type foresight struct {
	terms   []string
	columns []string // that the terms refer to
	blind   bool     // they refer to something else, too
}

// add takes note of a column that the CHECK refers to. where is the condition of its partition, empty for the table.
func (f *foresight) add(check, where, column string) {
	term := "(NOT (" + check + "))"
	if where != "" {
		term = "(" + where + " AND " + term + ")"
		f.refer("ts")
	}
	if !slices.Contains(f.terms, term) {
		f.terms = append(f.terms, term)
	}
	f.refer(column)
}

func (f *foresight) refer(column string) {
	if _, ok := foreseeable[column]; !ok {
		f.blind = true
		return
	}
	if !slices.Contains(f.columns, column) {
		f.columns = append(f.columns, column)
	}
}

// sql evaluates the terms over rows of the columns. The names are of our own, and the terms are the server's own text
// of what it evaluates for each insert, by the same role: its pg_get_expr, never anybody's words.
func (f *foresight) sql() string {
	params := make([]string, len(f.columns))
	for i, name := range f.columns {
		params[i] = fmt.Sprintf("$%d::%s[]", i+1, foreseeable[name].sql)
	}
	return "SELECT i.docket_n FROM unnest(" + strings.Join(params, ", ") + ") WITH ORDINALITY AS i(" +
		strings.Join(f.columns, ", ") + ", docket_n) WHERE " + strings.Join(f.terms, " OR ")
}

// portion is how many of the rows are sent at once.
func (f *foresight) portion(rows []pipeline.Row) int {
	size := 0
	for n := range rows {
		for _, name := range f.columns {
			size += 4 + foreseeable[name].size(&rows[n])
		}
		if size > maxPortion && n > 0 {
			return n
		}
	}
	return len(rows)
}

// look adds the positions of the rows that the terms refuse; the first of the rows is at from.
func (f *foresight) look(t *transaction, rows []pipeline.Row, from int, refused []int) ([]int, error) {
	params := make([][]byte, len(f.columns))
	for i, name := range f.columns {
		params[i] = foreseeable[name].array(rows)
	}
	err := t.ask(f.sql(), params, func(values [][]byte) error {
		if len(values) == 1 && len(values[0]) == 8 {
			if n := binary.BigEndian.Uint64(values[0]); n >= 1 && n <= uint64(len(rows)) {
				refused = append(refused, from+int(n)-1)
				return nil
			}
		}
		return errclass.As(&db.AnswerError{Problem: "a row was foreseen that was not sent"}, errclass.CodeProtocol)
	})
	return refused, err
}

// foreseen is a column as an expression can be given it.
type foreseen struct {
	sql  string // its type
	oid  uint32
	size func(*pipeline.Row) int // about how many bytes it has
	put  func(*array, *pipeline.Row)
}

func (c foreseen) array(rows []pipeline.Row) []byte {
	size := 0
	for i := range rows {
		size += c.size(&rows[i])
	}
	a := newArray(c.oid, len(rows), size)
	for i := range rows {
		c.put(a, &rows[i])
	}
	return a.bytes()
}

// foreseeable are the columns that Docket fills.
var foreseeable = map[string]foreseen{
	"decision_id":      texts(func(r *pipeline.Row) (string, bool) { return r.Log.ID, true }),
	"ts":               {"timestamptz", oidTimestamptz, eight, func(a *array, r *pipeline.Row) { a.int8(micros(r.Log.Time)) }},
	"path":             texts(func(r *pipeline.Row) (string, bool) { return r.Log.Path.V, r.Log.Path.Valid }),
	"allowed":          {"bool", oidBool, eight, func(a *array, r *pipeline.Row) { a.nullBool(r.Log.Allowed) }},
	"requested_by":     texts(func(r *pipeline.Row) (string, bool) { return r.Log.RequestedBy.V, r.Log.RequestedBy.Valid }),
	"req_id":           {"int8", oidInt8, eight, func(a *array, r *pipeline.Row) { a.nullInt8(r.Log.ReqID) }},
	"opa_id":           texts(func(r *pipeline.Row) (string, bool) { return r.Log.OPAID.V, r.Log.OPAID.Valid }),
	"opa_version":      texts(func(r *pipeline.Row) (string, bool) { return r.Log.OPAVersion.V, r.Log.OPAVersion.Valid }),
	"service":          texts(func(r *pipeline.Row) (string, bool) { return r.Log.Service.V, r.Log.Service.Valid }),
	"labels":           documents(func(r *pipeline.Row) []byte { return r.Log.Labels }),
	"bundles":          documents(func(r *pipeline.Row) []byte { return r.Log.Bundles }),
	"raw":              documents(func(r *pipeline.Row) []byte { return r.Log.Raw }),
	"source_topic":     texts(func(r *pipeline.Row) (string, bool) { return r.Topic, true }),
	"source_partition": {"int4", oidInt4, eight, func(a *array, r *pipeline.Row) { a.int4(r.Partition) }},
	"source_offset":    {"int8", oidInt8, eight, func(a *array, r *pipeline.Row) { a.int8(r.Offset) }},
	"source_index":     {"int4", oidInt4, eight, func(a *array, r *pipeline.Row) { a.int4(int32(r.Index)) }},
	"raw_sha256":       {"bytea", oidBytea, func(*pipeline.Row) int { return sha256.Size }, func(a *array, r *pipeline.Row) { a.hash(r.Log.Sum()) }},
	"uploaded_by":      texts(func(r *pipeline.Row) (string, bool) { return r.UploadedBy, r.UploadedBy != "" }),
}

func eight(*pipeline.Row) int { return 8 }

func texts(of func(*pipeline.Row) (string, bool)) foreseen {
	return foreseen{"text", oidText,
		func(r *pipeline.Row) int { s, _ := of(r); return len(s) },
		func(a *array, r *pipeline.Row) {
			s, ok := of(r)
			if !ok {
				a.null()
				return
			}
			a.text(s)
		}}
}

func documents(of func(*pipeline.Row) []byte) foreseen {
	return foreseen{"jsonb", oidJSONB,
		func(r *pipeline.Row) int { return 1 + len(of(r)) },
		func(a *array, r *pipeline.Row) { a.jsonb(of(r)) }}
}
