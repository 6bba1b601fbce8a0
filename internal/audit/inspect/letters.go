package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"docket/internal/desk/ledger"
	"docket/internal/history/lookup"
)

// letterBook is the part of the ledger that tells of dead letters which were found in Kafka.
type letterBook interface {
	Show(ctx context.Context, id string) (ledger.Entry, error)
	Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error)
}

var errMoreRanges = fmt.Errorf("only the newest %d ranges were read, and there are more", mostRanges)

// letters asks the ledger for the dead letters that were found. A ledger that cannot be read is not an error, because the places are known
// without it. It is named if it may have one of the letters.
func (w *Whereabouts) letters(ctx context.Context, book letterBook) {
	var found []*Forwarded
	for i := range w.Records {
		for j := range w.Records[i].Decisions {
			d := &w.Records[i].Decisions[j]
			for k := range d.Forwarded {
				if f := &d.Forwarded[k]; f.Entry != "" {
					found = append(found, f)
				}
			}
		}
	}
	if len(found) == 0 {
		return
	}
	ranges, unread := book.Surplus(ctx, true, 0, mostRanges+1) // before the ledger, so letters that enter meanwhile are found there
	if len(ranges) > mostRanges {
		ranges, unread = ranges[:mostRanges], errMoreRanges
	}
	for _, f := range found {
		e, err := book.Show(ctx, f.Entry)
		if err == nil {
			f.Letter = &Letter{State: e.State, By: e.ChangedBy, Why: e.Why}
			continue
		}
		for n := range ranges {
			if ranges[n].Has(f.Found, f.At.Partition, f.At.Offset, f.Client, f.AnyClient) {
				f.Left = &ranges[n]
			}
		}
		if f.Left != nil {
			continue
		}
		if !errors.Is(err, ledger.ErrNotFound) {
			f.Unasked = true
			w.lack("the ledger of dead letters", err)
		}
		if unread != nil {
			f.Unasked = true
			w.lack("dead letters that a desk left in Kafka", unread)
		}
	}
}

// lack names a place that was not searched completely, and why.
func (w *Whereabouts) lack(name string, err error) {
	g := lookup.Gap{Name: name, Why: err.Error()}
	if of := hint(err); of != "" {
		g.Why += "; " + of
	}
	if text := g.String(); !slices.Contains(w.Unlooked, text) {
		w.Unlooked = append(w.Unlooked, text)
	}
}
