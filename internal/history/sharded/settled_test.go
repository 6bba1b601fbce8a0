package sharded_test

import (
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/testkit/readertest"
)

// settled is a shard that is done with all before a time.
type settled struct {
	*readertest.Store
	before time.Time
}

func (s settled) SettledBefore(reader.Tail) time.Time { return s.before }

// TestStore_SettledBefore is the earliest time of all shards, and unknown where one does not tell it.
func TestStore_SettledBefore(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(shards ...sharded.Shard) time.Time {
		s := sharded.New(shards...)
		_, tail, err := s.Follow(t.Context(), reader.Filter{}, reader.Tail{}, 10, false)
		if err != nil {
			t.Fatal(err)
		}
		if before := s.SettledBefore(reader.Tail{}); !before.IsZero() {
			t.Errorf("of no place: %v", before)
		}
		return s.SettledBefore(tail)
	}
	late := sharded.Shard{Name: "a", Store: settled{&readertest.Store{}, noon}}
	early := sharded.Shard{Name: "b", Store: settled{&readertest.Store{}, noon.Add(-time.Minute)}}
	mute := sharded.Shard{Name: "c", Store: &readertest.Store{}}
	unknown := sharded.Shard{Name: "d", Store: settled{&readertest.Store{}, time.Time{}}}
	if got := at(late, early); !got.Equal(noon.Add(-time.Minute)) {
		t.Errorf("%v", got)
	}
	for _, shards := range [][]sharded.Shard{{late, mute}, {unknown, late}} {
		if got := at(shards...); !got.IsZero() {
			t.Errorf("%v", got)
		}
	}
}
