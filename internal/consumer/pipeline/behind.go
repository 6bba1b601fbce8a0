package pipeline

import (
	"bytes"

	"docket/internal/errclass"
)

// identity is what a row is stored once for.
type identity struct {
	id string
	at int64 // microseconds
}

func (it *item) identity() identity { return identity{it.log.ID, it.log.Time.UnixMicro()} }

// waitedFor has the items of a search that failed alone and may be parked. A later decision of the same identity with
// another payload is not written in the same search: it would take the row of the earlier one, which would be dead-lettered
// as id_conflict when it is replayed. Equal bytes are written, as the earlier one is a duplicate of them then.
type waitedFor map[identity]*item

// add notes an item that failed alone with err, unless a dead letter is all that it can become.
func (f waitedFor) add(it *item, err error) {
	if v := errclass.Classify(err); v.Class == errclass.Data && v.Rule != errclass.ParkOnceBisect {
		return
	}
	if of := it.identity(); f[of] == nil {
		f[of] = it
	}
}

// of returns the item that it has to wait for, nil where there is none.
func (f waitedFor) of(it *item) *item {
	first := f[it.identity()]
	if first == nil || first == it || bytes.Equal(first.log.Came(), it.log.Came()) {
		return nil
	}
	return first
}

// independent returns the items that wait for no other.
func (f waitedFor) independent(items []*item) []*item {
	if len(f) == 0 {
		return items
	}
	free := make([]*item, 0, len(items))
	for _, it := range items {
		if f.of(it) == nil {
			free = append(free, it)
		}
	}
	return free
}

// parkBehind parks the items that wait for one that was parked, for the same reason and spending no attempt. Those that
// wait for one that was not may be written now.
func (f waitedFor) parkBehind(items []*item) {
	if len(f) == 0 {
		return
	}
	for _, it := range items {
		if first := f.of(it); first != nil && first.parked() {
			it.parkBehind(first)
		}
	}
}
