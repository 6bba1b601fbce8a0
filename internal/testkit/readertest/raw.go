package readertest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"docket/internal/history/reader"
	"docket/internal/record/decision"
)

// AddRaw stores decisions like the consumer, each a second after its timestamp. It returns the error of the first
// refused one.
func (s *Store) AddRaw(raws ...[]byte) error {
	for i, raw := range raws {
		record, refused := decision.Decode(raw, int64(len(raw)))
		if refused != nil {
			return refused
		}
		for _, part := range record.Parts {
			if part.Err != nil {
				return part.Err
			}
			s.Add(Of(part.Log, int64(i)))
		}
	}
	return nil
}

func pointers(u *decision.Unfaithful) []string {
	if u == nil {
		return nil
	}
	return slices.Clone(u.Pointers)
}

// Of returns a decision as it is read back, from its decoded form.
func Of(l decision.Log, offset int64) reader.Decision {
	d := reader.Decision{Row: reader.Row{
		ID: strings.Clone(l.ID), Time: l.Time, Topic: "decision-logs", Offset: offset, StoredAt: l.Time.Add(time.Second), Labels: slices.Clone(l.Labels), Bundles: slices.Clone(l.Bundles),
		Unfaithful: pointers(l.Unfaithful),
	}, Raw: slices.Clone(l.Raw)}
	for _, one := range []struct {
		to    **string
		text  string
		valid bool
	}{
		{&d.Path, l.Path.V, l.Path.Valid}, {&d.Service, l.Service.V, l.Service.Valid}, {&d.RequestedBy, l.RequestedBy.V, l.RequestedBy.Valid},
		{&d.OPAID, l.OPAID.V, l.OPAID.Valid}, {&d.OPAVersion, l.OPAVersion.V, l.OPAVersion.Valid},
	} {
		if text := strings.Clone(one.text); one.valid {
			*one.to = &text
		}
	}
	if l.Allowed.Valid {
		d.Allowed = &l.Allowed.V
	}
	if l.ReqID.Valid {
		d.ReqID = &l.ReqID.V
	}
	var whole struct{ Result, Error json.RawMessage }
	if json.Unmarshal(l.Raw, &whole) != nil {
		return d
	}
	there := func(raw json.RawMessage) bool { return raw != nil && !bytes.Equal(raw, []byte("null")) }
	switch {
	case d.Allowed != nil && *d.Allowed:
		d.Verdict = reader.Allowed
	case d.Allowed != nil:
		d.Verdict = reader.Denied
	case there(whole.Error):
		d.Verdict = reader.Error
	case !there(whole.Result):
		d.Verdict = reader.Undefined
	default:
		d.Verdict = reader.Other
	}
	return d
}
