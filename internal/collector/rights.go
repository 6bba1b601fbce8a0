package collector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"docket/internal/record/decision"
)

// AnyClient is the name in [Rights] of every client that is not named there.
const AnyClient = "*"

// Rights are the decisions that each client may upload, by the name of its token or certificate. The zero value lets every client upload
// every decision.
type Rights map[string]Right

// Right is what one client may upload.
type Right struct {
	IDs   Patterns `json:"ids"`   // labels.id of a decision; nil: any, and none
	Paths Patterns `json:"paths"` // path of a decision; nil: any, and none
}

// Patterns are values, each as it is or as the beginning of one with a * behind it.
type Patterns []string

// UnmarshalJSON is of [json.Unmarshaler]. A list that is null or empty is an error: to allow all, leave it out.
func (p *Patterns) UnmarshalJSON(text []byte) error {
	var all []string
	if json.Unmarshal(text, &all) != nil || len(all) == 0 {
		return errors.New("a list is no list of texts, or empty; leave it out to allow all")
	}
	for _, one := range all {
		switch {
		case one == "":
			return errors.New("a list has an empty text")
		case strings.Contains(strings.TrimSuffix(one, "*"), "*"):
			return fmt.Errorf("in %q a * stands elsewhere than at the end", one)
		}
	}
	*p = all
	return nil
}

// ParseRights reads the file DOCKET_COLLECTOR_CLIENTS_FILE: a JSON object with a member for each client, whose value is an object with ids, paths,
// both or neither. A probable mistake is an error: an unknown key, a client named twice, an empty list, a * that is not at the end.
func ParseRights(text []byte) (Rights, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is no JSON object with a member for each client")
	}
	all := Rights{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, errNoJSON(d)
		}
		client, _ := t.(string) // in an object nothing else comes
		var r *Right
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("what client %q may upload cannot be read: %w", client, err)
		}
		_, twice := all[client]
		switch {
		case r == nil:
			return nil, fmt.Errorf("client %q is null; write {} to allow all", client)
		case twice:
			return nil, fmt.Errorf("client %q is there twice", client)
		case client == "":
			return nil, errors.New("a client has no name")
		}
		all[client] = *r
	}
	if _, err := d.Token(); err != nil {
		return nil, errNoJSON(d)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the JSON object")
	}
	if len(all) == 0 {
		return nil, errors.New("it names no client, so nobody could upload")
	}
	return all, nil
}

func errNoJSON(d *json.Decoder) error {
	return fmt.Errorf("it is no JSON from byte %d on", d.InputOffset())
}

// of is what a client may upload; not ok: it may upload nothing.
func (r Rights) of(client string) (right Right, ok bool) {
	if r == nil {
		return Right{}, true
	}
	if right, ok = r[client]; !ok {
		right, ok = r[AnyClient]
	}
	return right, ok
}

// notAllowed is the reason on the dead letter of a decision that its client may not upload.
const notAllowed decision.Reason = "not_allowed"

// refuses says why a client may not upload a decision; nil: it may.
func (r Right) refuses(l *decision.Log) *decision.Refusal {
	switch {
	case r.IDs != nil && !(l.OPAID.Valid && r.IDs.fit(l.OPAID.V)):
		return &decision.Refusal{Reason: notAllowed, Field: "labels.id"}
	case r.Paths != nil && !(l.Path.Valid && r.Paths.fit(l.Path.V)):
		return &decision.Refusal{Reason: notAllowed, Field: "path"}
	}
	return nil
}

func (p Patterns) fit(value string) bool {
	for _, one := range p {
		if start, open := strings.CutSuffix(one, "*"); one == value || open && strings.HasPrefix(value, start) {
			return true
		}
	}
	return false
}
