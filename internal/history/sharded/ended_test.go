package sharded_test

import (
	"context"
	"errors"
	"testing"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/record/verdict"
)

// once has decisions to follow, and tells each once: the mark that it returns remembers what it told, as that of a database does.
type once struct {
	reader.Store
	stored []reader.Decision
	until  context.Context // it answers once that has ended; nil: at once
}

func (o *once) Follow(ctx context.Context, _ reader.Filter, t reader.Tail, limit int, _ bool) ([]reader.Decision, reader.Tail, error) {
	if o.until != nil {
		<-o.until.Done()
		return nil, t, ctx.Err()
	}
	told, going := t.Mark.(*int)
	if !going {
		return nil, reader.Tail{Mark: new(int)}, nil
	}
	found := o.stored[*told:min(*told+limit, len(o.stored))]
	*told += len(found)
	return found, t, nil
}

// A question that ends before every shard answered has what the others told, and names the rest. A mark of theirs does not tell
// it again.
func TestFollow_QuestionEnded(t *testing.T) {
	t.Parallel()
	a, b := &once{}, &once{}
	all := sharded.New(sharded.Shard{Name: "a", Store: a}, sharded.Shard{Name: "b", Store: b})
	_, tail, err := all.Follow(t.Context(), reader.Filter{}, reader.Tail{}, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	a.stored = []reader.Decision{decision("of-a", 1, "p", verdict.Allowed)}
	ended, end := context.WithCancel(t.Context())
	end()
	b.until = ended
	first, tail, err := all.Follow(ended, reader.Filter{}, tail, 10, false)
	if partial := reader.AsPartial(err); partial == nil || !errors.Is(err, context.Canceled) || len(partial.Missing()) != 1 || partial.Missing()[0] != "b" {
		t.Errorf("shard b did not answer: %v", err)
	}
	b.until, b.stored = nil, []reader.Decision{decision("of-b", 2, "p", verdict.Allowed)}
	second, tail, err := all.Follow(t.Context(), reader.Filter{}, tail, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	if told := append(first, second...); len(told) != 2 || told[0].ID != "of-a" || told[1].ID != "of-b" {
		t.Errorf("it told %v", texts(told))
	}
	b.until = ended
	if _, _, err := all.Follow(ended, reader.Filter{}, tail, 10, false); !errors.Is(err, context.Canceled) || reader.AsPartial(err) != nil {
		t.Errorf("nothing was told: %v", err)
	}
}
