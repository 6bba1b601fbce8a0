package tree

import (
	"strings"
	"testing"
	"time"

	"docket/internal/testkit/readertest"
)

// A decision that two shards have is explained once, and the explanation names the other one.
func TestShards_WhyNamesTheOther(t *testing.T) {
	t.Parallel()
	w, a, b := inShards()
	d := readertest.Decisions(13, now)[12]
	d.ID = "twice-in-shards"
	a.Add(d)
	b.Add(d)
	at := d.Time.UTC().Format(time.RFC3339Nano)
	for name, args := range map[string][]string{"text": {"why", d.ID, "--at", at}, "json": {"why", d.ID, "--at", at, "--json"}} {
		got := w.call(args...)
		if text := strings.Join(strings.Fields(got.out), " "); got.code != 0 || strings.Count(text, "another stored decision has this id: "+at+", "+string(d.Verdict)+", in shard b") != 1 {
			t.Errorf("%s: exit %d, %s%s", name, got.code, got.out, got.err)
		}
	}
	if got := w.call("why", d.ID); got.code != 1 || !strings.Contains(got.err, at+"  "+string(d.Verdict)+", shard b\n") {
		t.Errorf("without a time: exit %d, %s", got.code, got.err)
	}
	if got := w.call("logs", d.ID); got.code != 0 || !strings.Contains(got.out, "2 decisions have this id, in different shards; oldest first.") {
		t.Errorf("logs: exit %d, %s", got.code, got.out)
	}
}
