package demo

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
)

func ids(names ...string) map[string]bool {
	set := make(map[string]bool)
	for _, n := range names {
		set[n] = true
	}
	return set
}

func TestLedger_Letters(t *testing.T) {
	t.Parallel()
	got := letters(conservation.Evidence{Forwarded: []conservation.Forwarded{
		{ID: "a", Home: home.DeadLetter}, {ID: "a", Home: home.DeadLetter}, {ID: "b", Home: home.Exhausted},
		{ID: "c", Home: home.Parked}, {ID: "d", Home: home.Spooled},
	}})
	if want := ids("a", "b"); !maps.Equal(got, want) {
		t.Errorf("letters %v, want %v", got, want)
	}
}

func TestLedger_Check(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		topics, ledger map[string]bool
		complete       bool
		text           string
	}{
		"none":     {ids(), ids(), true, "The ledger holds all 0 dead letters: the desk entered each of them."},
		"all":      {ids("a", "b"), ids("b", "a"), true, "The ledger holds all 2 dead letters: the desk entered each of them."},
		"empty":    {ids("a", "b"), ids(), false, "THE LEDGER IS WRONG: it holds 0 of the 2 dead letters in the topics, and 0 others."},
		"one less": {ids("a", "b"), ids("b"), false, "THE LEDGER IS WRONG: it holds 1 of the 2 dead letters in the topics, and 0 others."},
		"one more": {ids("a"), ids("a", "b"), false, "THE LEDGER IS WRONG: it holds 1 of the 1 dead letters in the topics, and 1 others."},
		"another":  {ids("a"), ids("b"), false, "THE LEDGER IS WRONG: it holds 0 of the 1 dead letters in the topics, and 1 others."},
	} {
		got := compare(c.topics, c.ledger)
		if got.complete() != c.complete || got.String() != c.text {
			t.Errorf("%s: complete %v, %q", name, got.complete(), got)
		}
	}
}

func TestLedger_AwaitLetters(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	topics := ids("a", "b", "c")
	failed := errors.New("failed")
	// after is how long the ledger has existed.
	for name, c := range map[string]struct {
		read func(after time.Duration) (map[string]bool, error)
		want ledgerCheck
		took time.Duration
		err  error
	}{
		"complete at once": {
			read: func(time.Duration) (map[string]bool, error) { return topics, nil },
			want: ledgerCheck{held: 3},
		},
		"slow, but each gain within the limit": {
			read: func(after time.Duration) (map[string]bool, error) {
				all := []string{"a", "b", "c"}
				return ids(all[:min(3, int(after/(9*time.Second)))]...), nil
			},
			want: ledgerCheck{held: 3}, took: 27 * time.Second,
		},
		"never": {
			read: func(time.Duration) (map[string]bool, error) { return nil, nil },
			want: ledgerCheck{missing: 3}, took: limit,
		},
		"stops in the middle": {
			read: func(after time.Duration) (map[string]bool, error) {
				if after < 5*time.Second {
					return nil, nil
				}
				return ids("a"), nil
			},
			want: ledgerCheck{held: 1, missing: 2}, took: 5*time.Second + limit,
		},
		"read fails": {
			read: func(time.Duration) (map[string]bool, error) { return nil, failed },
			err:  failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := awaitLetters(t.Context(), limit, topics, func(context.Context) (map[string]bool, error) { return c.read(time.Since(began)) })
				if got != c.want || !errors.Is(err, c.err) || time.Since(began) != c.took {
					t.Errorf("%+v, %v after %v", got, err, time.Since(began))
				}
			})
		})
	}
}

func TestAwaitLetters_Stopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := awaitLetters(ctx, time.Minute, ids("a"), func(context.Context) (map[string]bool, error) { return nil, nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
