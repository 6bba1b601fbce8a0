package bisect

import "context"

// Answer is the judgement on one error. Its zero value stops the search, so
// that an error nobody judged blames no item.
type Answer uint8

const (
	// End says that the world is at fault: no item is to blame for this error,
	// nor on the word of the errors before it.
	End Answer = iota
	// Divide says that the fault may be one item's, so the search goes on.
	Divide
)

// Suspect is an item that failed alone, twice.
type Suspect[T any] struct {
	Item T
	// Err is the error of its second failure.
	Err error
}

// Result is what became of the items. Each is in exactly one place: a suspect,
// homeless, or in neither list and so written.
type Result[T any] struct {
	// Suspects are the bad items, in the order of the set. It is empty when
	// Err is set.
	Suspects []Suspect[T]
	// Homeless are the items that are not written and not to blame, in the
	// order of the set: all that were not written when Err ended the search. It
	// may share its memory with the set.
	Homeless []T
	// Err ended the search: the error that was judged End, or ctx.Err(). It is
	// nil when the search came to its end.
	Err error
	// Asked counts the asks but for the confirmations, and without the write of
	// the whole set that came before.
	Asked int
	// Confirmed counts the second asks of single items.
	Confirmed int
}

// Isolate finds the bad items of a set whose write as a whole failed with
// first, and writes all others.
//
// ask writes a part, all of it or nothing. Nil means written, and what is
// written stays so. again is true when an item that has just failed alone is
// asked a second time, for which the caller takes a fresh connection. ask gets
// slices of items and must not keep or change them.
//
// judge is asked about every error afresh, first included. End stops the
// search at once: what is not written is homeless, suspects found so far among
// it, since they were condemned by a world that was about to fail. A context
// that is done stops it likewise, whatever the error of the ask that it cut
// short.
//
// Parts are written in the order of the set, so of two items that exclude each
// other the earlier one wins. Where the left half of a failing part is
// written, the right half is taken to fail and is not asked as a whole. For a
// set of one, first counts as its first failure alone. A nil first means that
// the whole set was not asked yet.
func Isolate[T any](
	ctx context.Context,
	items []T,
	first error,
	ask func(ctx context.Context, part []T, again bool) error,
	judge func(error) Answer,
) Result[T] {
	if len(items) == 0 {
		return Result[T]{Err: first}
	}
	s := search[T]{items: items, ask: ask, judge: judge}
	whole := span{lo: 0, hi: len(items)}
	if err := ctx.Err(); err != nil {
		return s.end(0, err)
	}
	if first != nil {
		if judge(first) != Divide {
			return s.end(0, first)
		}
		whole.known = failed
	}
	s.todo = append(s.todo, whole)
	for len(s.todo) > 0 {
		last := len(s.todo) - 1
		part := s.todo[last]
		s.todo = s.todo[:last]
		if err := s.resolve(ctx, part); err != nil {
			return s.end(part.lo, err)
		}
	}
	return s.result
}

type knowledge uint8

const (
	nothing  knowledge = iota
	inferred           // to fail, as its left sister is written
	failed             // when asked
)

// span is the part of the set from lo up to but without hi.
type span struct {
	lo, hi int
	known  knowledge
}

func (s span) single() bool { return s.hi-s.lo == 1 }

// search goes through the set from left to right: everything before the span
// on top of todo is written or a suspect, everything from there on is neither.
type search[T any] struct {
	items  []T
	ask    func(ctx context.Context, part []T, again bool) error
	judge  func(error) Answer
	todo   []span // a stack, at most one span for each halving
	result Result[T]
}

// resolve writes the part, or divides it, or finds it a suspect. Its error is
// the one that ends the search, and then nothing of the part is written.
func (s *search[T]) resolve(ctx context.Context, part span) error {
	if part.known == nothing || part.known == inferred && part.single() {
		fault, end := s.try(ctx, part, false)
		if fault == nil {
			return end
		}
	}
	if part.single() {
		return s.confirm(ctx, part)
	}
	return s.divide(ctx, part)
}

func (s *search[T]) divide(ctx context.Context, part span) error {
	middle := part.lo + (part.hi-part.lo)/2
	left := span{lo: part.lo, hi: middle, known: failed}
	right := span{lo: middle, hi: part.hi}
	fault, end := s.try(ctx, left, false)
	switch {
	case end != nil:
		return end
	case fault == nil:
		right.known = inferred
		s.todo = append(s.todo, right)
	default:
		s.todo = append(s.todo, right, left)
	}
	return nil
}

func (s *search[T]) confirm(ctx context.Context, part span) error {
	fault, end := s.try(ctx, part, true)
	if fault != nil {
		s.result.Suspects = append(s.result.Suspects, Suspect[T]{Item: s.items[part.lo], Err: fault})
	}
	return end
}

// try asks for one part. fault is an error that may be the part's, end one
// that ends the search; both are nil when the part is written.
func (s *search[T]) try(ctx context.Context, part span, again bool) (fault, end error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if again {
		s.result.Confirmed++
	} else {
		s.result.Asked++
	}
	err := s.ask(ctx, s.items[part.lo:part.hi:part.hi], again)
	if err == nil {
		return nil, nil
	}
	if cut := ctx.Err(); cut != nil {
		return nil, cut
	}
	if s.judge(err) != Divide {
		return nil, err
	}
	return err, nil
}

// end gives up: nothing from lo on is written.
func (s *search[T]) end(lo int, err error) Result[T] {
	homeless := s.items[lo:len(s.items):len(s.items)]
	if n := len(s.result.Suspects); n > 0 {
		all := make([]T, 0, n+len(homeless))
		for _, suspect := range s.result.Suspects {
			all = append(all, suspect.Item)
		}
		homeless = append(all, homeless...)
	}
	return Result[T]{Homeless: homeless, Err: err, Asked: s.result.Asked, Confirmed: s.result.Confirmed}
}
