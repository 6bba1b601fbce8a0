package notify

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// scripted answers as it is told.
type scripted chan error

func (s scripted) send(context.Context, Message) error { return <-s }

// delivering makes channels with these senders and one try.
func delivering(t *testing.T, senders ...sender) *Channels {
	t.Helper()
	c, err := New("", zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range senders {
		ch := newChannel(string(rune('a'+i)), s, zerolog.Nop(), c.results)
		ch.limit, ch.pauses = time.Minute, nil
		c.channels = append(c.channels, ch)
	}
	return c
}

func TestDeliver_AnswersOnce(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, test := range map[string]struct {
		answers []error // of the channels
		taken   bool
	}{
		"no channel":  {nil, true},
		"taken":       {[]error{nil}, true},
		"not taken":   {[]error{away}, false},
		"one took it": {[]error{away, nil}, true},
		"all took it": {[]error{nil, nil}, true},
		"none did":    {[]error{away, away}, false},
	} {
		var senders []sender
		for _, answer := range test.answers {
			s := make(scripted, 1)
			s <- answer
			senders = append(senders, s)
		}
		c := delivering(t, senders...)
		told := make(chan bool, 9)
		stop := running(t, c)
		c.Deliver(example, func(taken bool) { told <- taken })
		if taken := <-told; taken != test.taken {
			t.Errorf("%s: taken %v", name, taken)
		}
		for i := range test.answers {
			channel := string(rune('a' + i))
			until(t, "each channel has answered", func() bool { return c.count(channel, sent)+c.count(channel, failed) == 1 })
		}
		if stop(); len(told) > 0 {
			t.Errorf("%s: %d more answers", name, len(told))
		}
	}
}

// A message that leaves the queue without a try was not taken, and neither was one that waits when the program ends.
func TestDeliver_DroppedIsNotTaken(t *testing.T) {
	t.Parallel()
	c := delivering(t, make(scripted))
	var got []int
	deliver := func(i int) {
		c.Deliver(example, func(taken bool) {
			if !taken {
				got = append(got, i)
			}
		})
	}
	for i := range queueLength + 2 {
		deliver(i)
	}
	if !slices.Equal(got, []int{0, 1}) {
		t.Fatalf("a full queue: %v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ended); err != nil || len(got) != queueLength+2 {
		t.Errorf("the end of the program: %v, %v", got, err)
	}
}
