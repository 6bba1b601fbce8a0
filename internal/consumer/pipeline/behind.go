package pipeline

import (
	"bytes"

	"docket/internal/errclass"
)

// identity is the key of a stored decision. The table has one row for each.
type identity struct {
	id string
	at int64 // microseconds
}

func (it *item) identity() identity { return identity{it.log.ID, it.log.Time.UnixMicro()} }

// waitedFor has the items of a search that failed alone and may be parked. The search does not write a later decision
// of the same identity with another payload. That decision would take the row, and the replay would dead-letter the
// earlier one as id_conflict. A decision with equal bytes is written: the earlier one becomes its duplicate.
type waitedFor map[identity]*item

// add notes an item that failed alone with err, unless that item can only become a dead letter.
func (f waitedFor) add(it *item, err error) {
	if v := errclass.Classify(err); v.Class == errclass.Data && v.Rule != errclass.ParkOnceBisect {
		return
	}
	if of := it.identity(); f[of] == nil {
		f[of] = it
	}
}

// of returns the earlier item that this item waits for, or nil.
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

// parkBehind parks each item behind an earlier one that was parked, for the same reason and without spending an
// attempt. If the earlier item was not parked, the later one may be written now.
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
