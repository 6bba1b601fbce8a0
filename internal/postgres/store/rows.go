package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"math"
	"strings"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// insertColumns are the parameters of the insert, in its order, for the rows at these positions.
func insertColumns(rows []pipeline.Row, at []int) [][]byte {
	var size struct{ id, path, by, opa, version, service, labels, bundles, raw, topic, uploader int }
	for _, i := range at {
		l := rows[i].Log
		size.id += len(l.ID)
		size.path += len(l.Path.V)
		size.by += len(l.RequestedBy.V)
		size.opa += len(l.OPAID.V)
		size.version += len(l.OPAVersion.V)
		size.service += len(l.Service.V)
		size.labels += len(l.Labels)
		size.bundles += len(l.Bundles)
		size.raw += len(l.Raw)
		size.topic += len(rows[i].Topic)
		size.uploader += len(rows[i].UploadedBy)
	}
	n := len(at)
	var (
		id        = newArray(oidText, n, size.id)
		ts        = newArray(oidTimestamptz, n, 8*n)
		path      = newArray(oidText, n, size.path)
		allowed   = newArray(oidBool, n, n)
		by        = newArray(oidText, n, size.by)
		reqID     = newArray(oidInt8, n, 8*n)
		opaID     = newArray(oidText, n, size.opa)
		version   = newArray(oidText, n, size.version)
		service   = newArray(oidText, n, size.service)
		labels    = newArray(oidText, n, size.labels)
		bundles   = newArray(oidText, n, size.bundles)
		raw       = newArray(oidText, n, size.raw)
		topic     = newArray(oidText, n, size.topic)
		partition = newArray(oidInt4, n, 4*n)
		offset    = newArray(oidInt8, n, 8*n)
		index     = newArray(oidInt4, n, 4*n)
		sum       = newArray(oidBytea, n, sha256.Size*n)
		came      = newArray(oidBytea, n, 0)
		places    = newArray(oidText, n, 0)
		client    = newArray(oidText, n, size.uploader)
	)
	for _, i := range at {
		r := &rows[i]
		l := r.Log
		id.text(l.ID)
		ts.int8(micros(l.Time))
		path.nullText(l.Path)
		allowed.nullBool(l.Allowed)
		by.nullText(l.RequestedBy)
		reqID.nullInt8(l.ReqID)
		opaID.nullText(l.OPAID)
		version.nullText(l.OPAVersion)
		service.nullText(l.Service)
		labels.json(l.Labels)
		bundles.json(l.Bundles)
		raw.json(l.Raw)
		topic.text(r.Topic)
		partition.int4(r.Partition)
		offset.int8(r.Offset)
		index.int4(int32(r.Index))
		sum.hash(l.Sum())
		unfaithful(came, places, l)
		client.nullText(uploader(r))
	}
	return [][]byte{
		id.bytes(), ts.bytes(), path.bytes(), allowed.bytes(), by.bytes(), reqID.bytes(), opaID.bytes(), version.bytes(),
		service.bytes(), labels.bytes(), bundles.bytes(), raw.bytes(), topic.bytes(), partition.bytes(), offset.bytes(), index.bytes(), sum.bytes(),
		came.bytes(), places.bytes(), client.bytes(),
	}
}

// uploader is who uploaded a decision, NULL where nobody is known.
func uploader(r *pipeline.Row) sql.Null[string] {
	return sql.Null[string]{V: r.UploadedBy, Valid: r.UploadedBy != ""}
}

// unfaithful appends the bytes that a decision came in and where its payload differs, NULL and NULL where it does not. The places are the
// text of an array: the elements of an array of arrays would all be equally many.
func unfaithful(came, places *array, l *decision.Log) {
	if l.Unfaithful == nil {
		came.null()
		places.null()
		return
	}
	came.text(string(l.Unfaithful.Bytes))
	quoted := make([]string, len(l.Unfaithful.Pointers))
	for i, p := range l.Unfaithful.Pointers {
		quoted[i] = `"` + arrayText.Replace(p) + `"`
	}
	places.text("{" + strings.Join(quoted, ",") + "}")
}

var arrayText = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// timestamp is one of Postgres's microseconds in binary form.
func timestamp(micros int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(micros)) }

// compareColumns are the parameters of the comparison for the rows at these positions, of which there is one at least.
func compareColumns(rows []pipeline.Row, at []int) [][]byte {
	var ids, raws int
	for _, i := range at {
		ids += len(rows[i].Log.ID)
		raws += len(rows[i].Log.Came())
	}
	n := len(at)
	id, ts, raw := newArray(oidText, n, ids), newArray(oidTimestamptz, n, 8*n), newArray(oidText, n, raws)
	for _, i := range at {
		id.text(rows[i].Log.ID)
		ts.int8(micros(rows[i].Log.Time))
		if came := rows[i].Log.Came(); rows[i].Log.Unfaithful == nil || decision.Holds(came) {
			raw.json(came)
		} else {
			raw.null()
		}
	}
	first, last := spanOf(rows, at)
	return [][]byte{id.bytes(), ts.bytes(), raw.bytes(), first, last}
}

// spanOf gives the earliest and the latest time of the rows at these positions.
func spanOf(rows []pipeline.Row, at []int) (first, last []byte) {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, i := range at {
		ts := micros(rows[i].Log.Time)
		from, to = min(from, ts), max(to, ts)
	}
	return timestamp(from), timestamp(to)
}
