package archive

import (
	"bytes"
	"context"
	"iter"
)

// contained finds the earlier archives of a day whose rows are all in a new one. Both are in the same order, so rows
// are compared one after the other. An equal partition proves nothing: a table restored to an earlier moment, or a
// standby that had missed writes, has fewer rows than were archived.
type contained struct{ all []*earlier }

// earlier is an earlier archive that is read at the same time.
type earlier struct {
	name string
	next func() ([]byte, bool)
	stop func()
	line []byte // its next row
	left bool
	err  error
}

// contained begins to read the earlier archives of that source.
func (c *Carrier) contained(ctx context.Context, before []*Manifest, source string) *contained {
	var k contained
	for _, m := range before {
		if m.Source.ID != source {
			continue
		}
		e := &earlier{name: m.Name()}
		e.next, e.stop = iter.Pull(func(yield func([]byte) bool) {
			e.err = Check(ctx, c.Shelf, m, func(line []byte) error {
				if !yield(line) {
					return errAbandoned
				}
				return nil
			})
		})
		e.line, e.left = e.next()
		k.all = append(k.all, e)
	}
	return &k
}

// meet compares the next row of the new archive.
func (k *contained) meet(line []byte) {
	for _, e := range k.all {
		if e.left && bytes.Equal(e.line, line) {
			e.line, e.left = e.next()
		}
	}
}

// names returns the archives whose rows were all found. A broken one is left out.
func (k *contained) names() []string {
	var names []string
	for _, e := range k.all {
		if !e.left && e.err == nil {
			names = append(names, e.name)
		}
	}
	return names
}

func (k *contained) stop() {
	for _, e := range k.all {
		e.stop()
	}
}
