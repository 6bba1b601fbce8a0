package lookup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// A look-up in two shards has what both have, and names the places of each. A place that one could not search is a gap.
func TestFind_InShards(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t), newWorld(t)
	a.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon}}}
	b.put("parking", log("d-1", ""), first...)
	l := &Look{Shards: []ShardLook{{"a", a.look()}, {"b", b.look()}}}
	got := l.Find(t.Context(), "d-1")
	if len(got.Rows) != 1 || got.Rows[0].Shard != "a" || len(got.Found) != 1 || got.Found[0].Where != Parked || got.ID != "d-1" || !got.At.Equal(noon) {
		t.Errorf("found %+v", got)
	}
	for _, want := range []string{"shard a, the rows of decision_logs", "shard b, the rows of decision_logs", "shard b, the ledger of dead letters"} {
		if !slices.Contains(SearchedIn(got.Looked), want) {
			t.Errorf("looked at %q, without %q", SearchedIn(got.Looked), want)
		}
	}
	b.noTable = errors.New("away")
	if got = l.Find(t.Context(), "d-1"); got.Complete() || !slices.ContainsFunc(Gaps(got.NotLooked), func(g string) bool { return g == "shard b, the rows of decision_logs: away" }) {
		t.Errorf("not looked at %q", Gaps(got.NotLooked))
	}
}

// A decision that only the archive of one shard has is found, and names its shard.
func TestFind_ArchivedInShards(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t), newWorld(t)
	old := readertest.Decision(1, noon.AddDate(0, -2, 0))
	if _, err := archivetest.Write(t.Context(), archive.Dir(b.shelf), 2, old); err != nil {
		t.Fatal(err)
	}
	got := (&Look{Shards: []ShardLook{{"a", a.look()}, {"b", b.look()}}}).Find(t.Context(), old.ID)
	if len(got.Archived) != 1 || got.Archived[0].Shard != "b" || got.Archived[0].ID != old.ID {
		t.Errorf("found %+v, archived %+v", got.Found, got.Archived)
	}
}

// The spools of a host have records of all shards. Each record is told once, by the shard whose topic it goes to.
func TestFind_SpoolOfShards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spool("1700000000_a_1.jsonl.gz", spooled(t, "parking-b", log("d-1", "")))
	var shards []ShardLook
	for _, name := range []string{"a", "b"} {
		one := w.look()
		one.Settings.KafkaParkingTopic, one.Settings.KafkaDLQTopic, one.Settings.KafkaParkingDLQTopic = "parking-"+name, "dlq-"+name, "parking-dlq-"+name
		shards = append(shards, ShardLook{name, one})
	}
	got := (&Look{Shards: shards}).Find(t.Context(), "d-1")
	if len(got.Found) != 1 || got.Found[0].Where != Spooled || got.Found[0].To != "parking-b" {
		t.Errorf("found %+v", got.Found)
	}
	if n := len(slices.DeleteFunc(SearchedIn(got.Looked), func(p string) bool { return !strings.Contains(p, "the spool") })); n != 2 {
		t.Errorf("looked at %q", SearchedIn(got.Looked))
	}
}

// A spool can have records for a topic of no shard, as of a shard that is gone. The first shard tells of them.
func TestFind_SpoolOfAGoneShard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spool("1700000000_a_1.jsonl.gz", spooled(t, "parking-of-before", log("d-1", "")))
	var shards []ShardLook
	for _, name := range []string{"a", "b"} {
		one := w.look()
		one.Settings.KafkaParkingTopic, one.Settings.KafkaDLQTopic, one.Settings.KafkaParkingDLQTopic = "parking-"+name, "dlq-"+name, "parking-dlq-"+name
		shards = append(shards, ShardLook{name, one})
	}
	got := (&Look{Shards: shards}).Find(t.Context(), "d-1")
	if len(got.Found) != 1 || got.Found[0].Where != Spooled || got.Found[0].To != "parking-of-before" {
		t.Errorf("found %+v", got.Found)
	}
}

// An id that a shard has is whole. So the archived days of another shard, which need a whole id, leave no gap.
func TestFind_WholeIDInShards(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t), newWorld(t)
	if _, err := archivetest.Write(t.Context(), archive.Dir(b.shelf), 2, readertest.Decision(1, noon.AddDate(0, -2, 0))); err != nil {
		t.Fatal(err)
	}
	l := &Look{Shards: []ShardLook{{"a", a.look()}, {"b", b.look()}}}
	if got := l.Find(t.Context(), "order-12345"); got.Complete() || len(got.NotLooked) != 1 {
		t.Errorf("without a row: not looked at %q", Gaps(got.NotLooked))
	}
	a.rows = []reader.Decision{{Row: reader.Row{ID: "order-12345", Time: noon}}}
	if got := l.Find(t.Context(), "order-12345"); len(got.Rows) != 1 || !got.Complete() {
		t.Errorf("%d rows, and not looked at %q", len(got.Rows), Gaps(got.NotLooked))
	}
}
