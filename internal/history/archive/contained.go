package archive

import (
	"bytes"
	"context"
	"iter"
)

// contained finds out which earlier archives of a day are in a new one, row by row. Both are in the same order, so what is
// contained is met one after the other. That a partition is the same proves nothing: one that was taken back to an earlier moment,
// or is now on a standby that had not got everything, has fewer rows than were archived.
type contained struct{ all []*earlier }

// earlier is an archive that is being read beside.
type earlier struct {
	name string
	next func() ([]byte, bool)
	stop func()
	line []byte // that is to be met
	left bool
	err  error
}

// contained begins to read the archives of that source.
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

// meet is given each row of the new archive.
func (k *contained) meet(line []byte) {
	for _, e := range k.all {
		if e.left && bytes.Equal(e.line, line) {
			e.line, e.left = e.next()
		}
	}
}

// names are those whose rows were all met. One that is broken is none of them.
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
