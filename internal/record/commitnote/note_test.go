package commitnote_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"docket/internal/record/commitnote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func anySpool(t *rapid.T) commitnote.Spool {
	return commitnote.Spool{ID: rapid.SampledFrom([]string{"a", "b", "3f9a2c114f397d52"}).Draw(t, "id"), Since: int64(rapid.IntRange(1, 4).Draw(t, "since")), Holds: rapid.Bool().Draw(t, "holds")}
}

func anyNote(t *rapid.T) (n commitnote.Note) {
	for range rapid.IntRange(0, 4).Draw(t, "n") {
		n = n.Join(commitnote.Of(anySpool(t)))
	}
	if rapid.Bool().Draw(t, "unnoted") {
		n = n.Join(commitnote.Unnoted(time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "until")), 0)))
	}
	return n
}

func TestNote_ComesBackFromItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := anyNote(t)
		back, ok := commitnote.Parse(n.String())
		if !ok || back.String() != n.String() || back.Holds() != n.Holds() || !back.Before().Equal(n.Before()) {
			t.Fatalf("%q came back as %q, %v", n, back, ok)
		}
	})
}

// Notes come from many partitions in any order, and some of them twice.
func TestNote_JoinInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyNote(t), anyNote(t), anyNote(t)
		want := a.Join(b).Join(c).String()
		for _, n := range []commitnote.Note{c.Join(b).Join(a), b.Join(c.Join(a)), a.Join(b).Join(c).Join(b).Join(a)} {
			if n.String() != want {
				t.Fatalf("%q and %q", n, want)
			}
		}
	})
}

func TestNote_NewestCounts(t *testing.T) {
	t.Parallel()
	of := func(since int64, holds bool) commitnote.Note {
		return commitnote.Of(commitnote.Spool{ID: "a", Since: since, Holds: holds})
	}
	for name, c := range map[string]struct {
		a, b commitnote.Note
		want bool
	}{
		"it became empty":          {of(1, true), of(2, false), false},
		"it got a file":            {of(1, false), of(2, true), true},
		"two that are equally new": {of(2, false), of(2, true), true},
		"none":                     {commitnote.Note{}, commitnote.Note{}, false},
	} {
		if c.a.Join(c.b).Holds() != c.want || c.b.Join(c.a).Holds() != c.want {
			t.Errorf("%s: not %v", name, c.want)
		}
	}
}

// A note is never longer than a broker takes. A spool that may have records is not forgotten, though it may lose its name.
func TestNote_Bounded(t *testing.T) {
	t.Parallel()
	var empty, holding, emptyLater commitnote.Note
	for i := range 500 {
		s := commitnote.Spool{ID: fmt.Sprintf("%032d", i), Since: int64(1)<<61 + int64(i)}
		empty = empty.Join(commitnote.Of(s))
		s.Holds = true
		holding = holding.Join(commitnote.Of(s))
		s.Since, s.Holds = s.Since+1000, false
		emptyLater = emptyLater.Join(commitnote.Of(s))
	}
	holding = holding.Join(commitnote.Unnoted(time.Unix(1<<40, 0)))
	for name, n := range map[string]commitnote.Note{"empty": empty, "holding": holding, "both": empty.Join(commitnote.Of(commitnote.Spool{ID: "z", Since: 1, Holds: true}))} {
		text := n.String()
		if len(text) >= 4096 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		back, ok := commitnote.Parse(text)
		if !ok || back.Holds() != (name != "empty") {
			t.Errorf("%s: %v, %v", name, back.Holds(), ok)
		}
		if name == "holding" && !back.Join(emptyLater).Holds() {
			t.Error("all that are named became empty, and the others are forgotten")
		}
		if again, ok := commitnote.Parse(back.Join(commitnote.Of(commitnote.Spool{ID: "y", Since: 1})).String()); !ok || again.Holds() != back.Holds() {
			t.Errorf("%s: the next note says otherwise", name)
		}
	}
}

func TestParse_NoNotes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "docket", "docket12", "docket1x", "docket-4c1e/7", "docket1 a", "docket1 a.1", "docket1 a.1.2", "docket1 a.0.1", "docket1 a.-1.1", "docket1 A.1.1", "docket1 .1.1",
		"docket1 a.99999999999999999999.1", "docket1 " + strings.Repeat("a", 33) + ".1.1", "docket2 a.1.1", "docket1 ?", "docket1 ?0", "docket1 ?-1", "docket1 ?1.1", "docket1 ?99999999999999999999"} {
		if n, ok := commitnote.Parse(text); ok {
			t.Errorf("%q is %q", text, n)
		}
	}
	if n, ok := commitnote.Parse("docket1"); !ok || n.Holds() {
		t.Error("a program without a spool, which met none, has no note")
	}
}

func TestKeeper_CarriesWhatItMet(t *testing.T) {
	t.Parallel()
	own := commitnote.Spool{ID: "own", Since: 10}
	known := true
	now := time.Unix(1000, 0)
	k := commitnote.NewKeeper(func() (commitnote.Spool, bool) { return own, known }, func() time.Time { return now })
	says := func(want string) {
		t.Helper()
		if got := k.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says("docket1 own.10.0")
	k.Met(7, "docket1 other.5.1 own.9.1")
	k.Met(0, "of another program") // nothing was committed
	says("docket1 own.10.0 other.5.1")
	own = commitnote.Spool{ID: "own", Since: 11, Holds: true}
	says("docket1 own.11.1 other.5.1")
	k.Met(0, "docket1 other.6.0")
	says("docket1 own.11.1 other.6.0")
	k.Met(7, "docket1 own.40.0") // of a copy
	says("docket1 own.41.1 other.6.0 ?1001")
	k.Met(7, "docket1 own.41.1")
	says("docket1 own.41.1 other.6.0 ?1001")
	own = commitnote.Spool{ID: "own", Since: 12}
	says("docket1 own.42.0 other.6.0 ?1001")
	now = now.Add(time.Minute)
	k.Met(7, "")
	says("docket1 own.42.0 other.6.0 ?1061")
	now = now.Add(time.Hour)
	k.Met(7, "docket1 ?2000") // of a program that found it earlier
	says("docket1 own.42.0 other.6.0 ?2000")
	k.Met(7, "of another program")
	says("docket1 own.42.0 other.6.0 ?4661")
	known = false
	says("")
	if got := commitnote.NewKeeper(nil, nil).Text(); got != "docket1" {
		t.Errorf("without a spool: %q", got)
	}
}
