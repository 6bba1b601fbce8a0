package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Needs are the archives of a day that a dropped day needs, by name.
type Needs struct {
	Archives   []string // that no other replaces
	Superseded []string // that are not needed any more
}

// needs returns the archives of the day that the same database wrote. m is among them, and its manifest is there as it was written.
// So are those whose manifest cannot be read, if the day left the table before, as they may have decisions from then.
func (c *Carrier) needs(ctx context.Context, m *Manifest, day Day, before bool) (n Needs, err error) {
	all, broken := Whole(ctx, c.Shelf, c.Table.Name(), &day)
	if err := notBroken(broken); err != nil {
		return n, err
	}
	superseded := Superseded(all)
	for _, one := range all {
		if !superseded[one.Name()] && one.Source.ID == m.Source.ID {
			n.Archives = append(n.Archives, one.Name())
		}
	}
	for _, name := range BrokenNames(broken) {
		if of := nameForm.FindStringSubmatch(name + manifestSuffix); before && !superseded[name] && of != nil && of[4] == m.Source.ID {
			n.Archives = append(n.Archives, name)
		}
	}
	slices.Sort(n.Archives)
	if !slices.ContainsFunc(all, m.same) {
		return n, &BrokenError{m.Name(), "its manifest is missing, or is not what was written"}
	}
	n.Superseded = slices.Sorted(maps.Keys(superseded))
	return n, nil
}

// same reports whether another manifest, which was read, says the same.
func (m *Manifest) same(o *Manifest) bool {
	if o.Name() != m.Name() {
		return false
	}
	is, err := json.Marshal(m)
	var read Manifest // as m would be: JSON cannot have all texts, such as a name that is not UTF-8
	err = errors.Join(err, json.Unmarshal(is, &read))
	is, again := json.Marshal(&read)
	has, wrong := json.Marshal(o)
	return errors.Join(err, again, wrong) == nil && bytes.Equal(is, has)
}
