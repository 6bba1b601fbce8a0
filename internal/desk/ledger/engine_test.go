package ledger_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func drawRule(t *rapid.T, id int64) ledger.Rule {
	return ledger.Rule{
		ID: id, Topic: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "topic"), Act: rapid.SampledFrom([]ledger.Act{ledger.Snoozed, ledger.Retried, ledger.Closed}).Draw(t, "act"),
		After: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "after"), Most: 10, Failures: 3,
		State:  rapid.SampledFrom([]ledger.RuleState{ledger.RuleProposed, ledger.RuleActive, ledger.RuleActive, ledger.RuleStopped, ledger.RuleRemoved, ledger.RuleOver}).Draw(t, "state"),
		EndsAt: noon.Add(rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Hour}).Draw(t, "ends")),
	}
}

func drawSubject(t *rapid.T) ledger.Subject {
	return ledger.Subject{
		State: rapid.SampledFrom(ledger.States()).Draw(t, "letter"), Topic: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "its topic"), Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"),
		ChangedAt:    noon.Add(rapid.SampledFrom([]time.Duration{-2 * time.Hour, -time.Minute, time.Hour}).Draw(t, "changed")),
		SnoozedUntil: noon.Add(rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Hour}).Draw(t, "snoozed")),
	}
}

func TestGoverning_OneRuleDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var rules []ledger.Rule
		for id := range rapid.Int64Range(0, 5).Draw(t, "rules") {
			rules = append(rules, drawRule(t, id+1))
		}
		s := drawSubject(t)
		before := slices.Clone(rules)
		r, snoozed, found := ledger.Governing(rules, s, noon)
		if !slices.Equal(before, rules) {
			t.Fatal("the rules were changed")
		}
		holds := func(act func(ledger.Act) bool, topic string) bool {
			return slices.ContainsFunc(rules, func(r ledger.Rule) bool {
				return act(r.Act) && r.Topic == topic && r.State == ledger.RuleActive && r.EndsAt.After(noon)
			})
		}
		is := func(a ledger.Act) bool { return a == ledger.Snoozed }
		acts := func(a ledger.Act) bool { return a != ledger.Snoozed }
		asleep := s.State != ledger.Resolved && (s.SnoozedUntil.After(noon) || holds(is, "") || holds(is, s.Topic))
		switch {
		case snoozed != asleep:
			t.Fatalf("snoozed %t, want %t", snoozed, asleep)
		case snoozed && found:
			t.Fatal("a rule decides about a snoozed letter")
		case found && (!acts(r.Act) || !r.Holds(noon) || r.Topic != "" && r.Topic != s.Topic):
			t.Fatalf("%+v decides", r)
		case found && r.Topic == "" && holds(acts, s.Topic):
			t.Fatal("the rule of every topic wins over that of the letter's")
		case !found && !snoozed && s.State != ledger.Resolved && (holds(acts, "") || holds(acts, s.Topic)):
			t.Fatal("no rule decides")
		}
	})
}

// TestGoverning_TopicWins: a rule of the letter's topic decides, in whatever order they come.
func TestGoverning_TopicWins(t *testing.T) {
	t.Parallel()
	each := ledger.Rule{ID: 1, Act: ledger.Retried, State: ledger.RuleActive, EndsAt: noon.Add(time.Hour)}
	own := each
	own.ID, own.Topic = 2, "decision-logs"
	for _, rules := range [][]ledger.Rule{{each, own}, {own, each}} {
		if r, _, found := ledger.Governing(rules, ledger.Subject{State: ledger.Pending, Topic: own.Topic}, noon); !found || r.ID != own.ID {
			t.Errorf("of %d and %d rule %d decides", rules[0].ID, rules[1].ID, r.ID)
		}
	}
}

// TestRule_EndsByItself plays a rule against letters that never are stored, whatever the clock does.
func TestRule_EndsByItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := ledger.Rule{ID: 1, Act: rapid.SampledFrom([]ledger.Act{ledger.Retried, ledger.Closed}).Draw(t, "act"), State: ledger.RuleActive, EndsAt: noon.Add(1000 * time.Hour),
			Most: rapid.Int64Range(1, 20).Draw(t, "most"), Failures: rapid.IntRange(1, 5).Draw(t, "failures"), Rate: rapid.SampledFrom([]float64{0, 0.01, 1, 50}).Draw(t, "rate")}
		letters := make([]ledger.Subject, rapid.IntRange(1, 10).Draw(t, "letters"))
		acted := make([][]int, len(letters))
		for i := range letters {
			letters[i] = ledger.Subject{State: ledger.Pending, ChangedAt: noon}
		}
		var ends []ledger.SendingOutcome
		now := noon
		for range 200 {
			now = now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Second, 10 * time.Second, time.Hour}).Draw(t, "passes"))
			room, stop := int(r.Most), ""
			if r.Act == ledger.Retried {
				room, stop = r.Judge(ends, 0)
			}
			if stop != "" {
				break
			}
			n := min(r.Allows(now, 100), room)
			for i := range letters {
				if n == 0 || !r.Due(letters[i], acted[i], now) {
					continue
				}
				n--
				r.Acted, r.ActedAt = r.Acted+1, now
				acted[i] = append(acted[i], letters[i].Attempts)
				if r.Act == ledger.Closed {
					letters[i].State = ledger.Resolved
					continue
				}
				letters[i].Attempts++ // it is dead again
				ends = slices.Insert(ends, 0, ledger.SendingDead)
			}
		}
		if r.Acted > r.Most || r.Act == ledger.Retried && r.Acted > int64(r.Failures) {
			t.Fatalf("it acted %d times", r.Acted)
		}
		for i := range acted {
			if slices.Sort(acted[i]); len(slices.Compact(slices.Clone(acted[i]))) != len(acted[i]) || r.Act == ledger.Closed && len(acted[i]) > 1 {
				t.Fatalf("it acted twice for one cause: %v", acted[i])
			}
		}
	})
}

func TestRule_KeepsItsRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := ledger.Rule{Rate: rapid.SampledFrom([]float64{0.01, 0.5, 3, 50}).Draw(t, "rate"), Most: 1e6}
		now := noon
		for range 50 {
			now = now.Add(rapid.SampledFrom([]time.Duration{-time.Minute, 0, time.Second, time.Minute, time.Hour}).Draw(t, "passes"))
			if n := r.Allows(now, 1000); n > 0 {
				r.Acted, r.ActedAt = r.Acted+int64(n), now
			}
		}
		if n := r.Allows(r.ActedAt.Add(-time.Hour), 1000); n != 0 {
			t.Fatalf("%d at an earlier time", n)
		}
		if n, most := r.Allows(r.ActedAt.Add(24*time.Hour), 1e9), int(max(1, r.Rate*60)); n > most || n < 1 {
			t.Fatalf("%d after a day, want 1 to %d", n, most)
		}
		second := r.Allows(r.ActedAt.Add(time.Second), 1000)
		if float64(second) > r.Rate {
			t.Fatalf("%d in a second at %g", second, r.Rate)
		}
	})
	first := ledger.Rule{Rate: 0.01, Most: 5}
	if n := first.Allows(noon, 10); n != 1 {
		t.Errorf("%d at first", n)
	}
	if n := (ledger.Rule{Most: 5, Acted: 3}).Allows(noon, 10); n != 2 {
		t.Errorf("%d are left", n)
	}
}

func TestRule_Judge(t *testing.T) {
	t.Parallel()
	stored, dead := ledger.SendingStored, ledger.SendingDead
	r := ledger.Rule{Failures: 3}
	for _, c := range []struct {
		ends []ledger.SendingOutcome
		open int
		room int
		stop bool
	}{
		{nil, 0, 3, false}, {nil, 2, 1, false}, {nil, 9, 0, false}, {[]ledger.SendingOutcome{dead}, 1, 1, false}, {[]ledger.SendingOutcome{dead, dead, stored}, 0, 1, false},
		{[]ledger.SendingOutcome{dead, ledger.SendingRefused, dead}, 0, 0, true}, {[]ledger.SendingOutcome{dead, ledger.SendingWithdrawn, dead}, 0, 1, false}, {[]ledger.SendingOutcome{ledger.SendingWithdrawn}, 1, 2, false}, {[]ledger.SendingOutcome{stored, dead, dead}, 7, 1 << 20, false},
	} {
		room, stop := r.Judge(c.ends, c.open)
		if (stop != "") != c.stop || min(room, 1<<20) != c.room {
			t.Errorf("%v and %d open: room %d, stop %q", c.ends, c.open, room, stop)
		}
	}
}

func TestRule_ValidateNamesTheField(t *testing.T) {
	t.Parallel()
	good := ledger.Rule{Fingerprint: "0123456789abcdef", Act: ledger.Retried, Most: 1, Failures: 1, EndsAt: noon.Add(time.Hour)}
	if err := good.Validate(noon); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*ledger.Rule){
		"act": func(r *ledger.Rule) { r.Act = ledger.Edited }, "fingerprint": func(r *ledger.Rule) { r.Fingerprint = "0123" }, "after": func(r *ledger.Rule) { r.After = -1 },
		"rate": func(r *ledger.Rule) { r.Rate = -1 }, "most": func(r *ledger.Rule) { r.Most = 0 }, "failures": func(r *ledger.Rule) { r.Failures = 0 }, "until": func(r *ledger.Rule) { r.EndsAt = noon },
	} {
		r := good
		spoil(&r)
		wrong, is := r.Validate(noon).(*ledger.InvalidError)
		if !is || wrong.Field != field {
			t.Errorf("%s: %v", field, wrong)
		}
	}
}
