package tree

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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
	const twins = "2 decisions have the id twice-in-shards and this time, in the shards a, b; this is that of a."
	other := readertest.Decisions(12, now)[0].ID // of shard a
	for name, args := range map[string][]string{"why": {"why", d.ID, "--at", at}, "a": {"diff", d.ID, other, "--at-a", at}, "b": {"diff", other, d.ID, "--at-b", at}} {
		if got := w.call(args...); got.code != 0 || strings.Count(got.err, twins) != 1 || name != "why" && strings.Count(got.out, ", shard a\n") != 2 {
			t.Errorf("%s: exit %d, %s%s", name, got.code, got.out, got.err)
		}
		if got := w.call(append(args, "--json")...); name != "why" && strings.Count(got.out, `"shard": "a"`) != 2 {
			t.Errorf("%s: %s", name, got.out)
		}
	}
	if got := w.call("logs", d.ID); got.code != 0 || !strings.Contains(got.out, "2 decisions have this id, in different shards; oldest first.") {
		t.Errorf("logs: exit %d, %s", got.code, got.out)
	}
}

// A decision that another shard stores later has the id and the time of one that was shown before, and is another one.
func TestShards_FollowShowsBoth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, a, b := inShards()
		w.signals = make(chan os.Signal, 1)
		d := readertest.Decisions(13, now)[12]
		d.ID = "twice-in-shards"
		a.Add(d)
		done := make(chan result)
		go func() { done <- w.call("logs", "-f", "-n", "100", "--lines") }()
		time.Sleep(2 * time.Second) // of the bubble's clock
		b.Add(d)
		time.Sleep(3 * time.Second)
		w.signals <- syscall.SIGTERM
		if r := <-done; r.code != 0 || strings.Count(r.out, d.ID) != 2 {
			t.Errorf("exit %d, %s", r.code, r.out)
		}
	})
}
