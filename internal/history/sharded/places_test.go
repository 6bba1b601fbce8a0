package sharded_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/testkit/readertest"
)

// leaving is a shard with a day that is being archived and cannot be read.
type leaving struct{ reader.Store }

func (l leaving) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	all, err := l.Store.ByID(ctx, id)
	return all, errors.Join(err, reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Place: "day 2026-05-01", Err: errors.New("no rights")}}}))
}

// TestStore_PlacesNameTheirShard has all shards lack a place of the same name at the same time.
func TestStore_PlacesNameTheirShard(t *testing.T) {
	t.Parallel()
	store := &readertest.Store{}
	store.Add(decision("x", 0, "a", reader.Allowed))
	var shards []sharded.Shard
	want := []string{}
	for i := range 20 {
		name := string(rune('a' + i))
		shards = append(shards, sharded.Shard{Name: name, Store: leaving{store}})
		want = append(want, "shard "+name+", day 2026-05-01")
	}
	ctx, parts := reader.WithParts(t.Context())
	all, err := sharded.New(shards...).ByID(ctx, "x")
	if err != nil || len(all) != len(shards) {
		t.Fatalf("%d decisions, %v", len(all), err)
	}
	var got []string
	for _, g := range parts.NotRead() {
		got = append(got, g.Name)
	}
	if !slices.Equal(got, want) || len(parts.NotAsked()) != 0 {
		t.Errorf("not read %q, not asked %q", got, parts.NotAsked())
	}
	if _, err := sharded.New(shards...).ByID(t.Context(), "x"); reader.AsPartial(err) == nil || len(reader.AsPartial(err).Missed) != len(shards) {
		t.Errorf("for a caller that does not collect: %v", err)
	}
}
