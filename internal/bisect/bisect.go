package bisect

import (
	"context"
	"slices"
)

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
// hint reads off an error at which item of the part that failed with it the
// table stumbled, and may be nil. It only says where to look: a suspect is
// asked alone, twice, all the same. A hint that turns out wrong is the last
// one that is believed.
//
// Parts are written in the order of the set, so of two items that exclude each
// other the earlier one wins. The only item that others overtake is the first
// that is named by a hint: as the table came to it before what is behind it, it
// does not fail on their account. For a set of one, first counts as its first
// failure alone. A nil first means that the whole set was not asked yet.
//
// How many writes that takes, and how many items are sent, is in the
// documentation of the package.
func Isolate[T any](
	ctx context.Context,
	items []T,
	first error,
	ask func(ctx context.Context, part []T, again bool) error,
	judge func(error) Answer,
	hint func(err error, part []T) (index int, ok bool),
) Result[T] {
	if len(items) == 0 {
		return Result[T]{Err: first}
	}
	s := search[T]{items: items, ask: ask, judge: judge, hint: hint}
	if end := s.run(ctx, first); end != nil {
		return s.end(end)
	}
	return s.result
}

// search goes through the set from left to right, stretch by stretch.
type search[T any] struct {
	items  []T
	ask    func(ctx context.Context, part []T, again bool) error
	judge  func(error) Answer
	hint   func(err error, part []T) (int, bool) // nil: none, or none any more
	at     int                                   // everything before it is written or a suspect, nothing from it on
	result Result[T]
}

// span is the part of the set from lo up to but without hi.
type span struct{ lo, hi int }

func (s span) len() int { return s.hi - s.lo }

// run writes stretches, each twice as long as the one before while nothing
// fails. Behind a bad item it goes on with one as long as the way to that item
// was, half of what failed at most.
func (s *search[T]) run(ctx context.Context, first error) (end error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	length, since := len(s.items), 0
	fault := first
	if first != nil && s.judge(first) != Divide {
		return first
	}
	for s.at < len(s.items) {
		stretch := span{s.at, min(s.at+length, len(s.items))}
		if fault == nil {
			if fault, end = s.write(ctx, stretch); end != nil {
				return end
			}
		}
		if fault == nil {
			length *= 2
			continue
		}
		if stretch.len() == len(s.items) {
			end = s.spare(ctx, stretch, fault)
		} else {
			end = s.pin(ctx, stretch, fault)
		}
		if end != nil {
			return end
		}
		length, since, fault = max(1, min(stretch.len()/2, s.at-since)), s.at, nil
	}
	return nil
}

// spare handles the failure of the whole set. Where an item is named, it may be
// the only bad one: then the others need a single write.
func (s *search[T]) spare(ctx context.Context, whole span, fault error) (end error) {
	named, ok := s.named(whole, fault)
	if !ok || whole.len() <= 2 { // what is left of two would be asked alone
		return s.pin(ctx, whole, fault)
	}
	others, end := s.try(ctx, slices.Concat(s.items[:named], s.items[named+1:]), false)
	switch {
	case end != nil:
		return end
	case others != nil: // it is not the only one
		return s.pin(ctx, whole, fault)
	}
	s.items = s.items[named : named+1 : named+1]
	return s.single(ctx, span{0, 1}, false)
}

// pin writes what is before the first bad item of a part that failed, and finds
// that item a suspect, if it fails alone as well.
func (s *search[T]) pin(ctx context.Context, part span, fault error) (end error) {
	asked, believed := true, false // whether the part failed, or is only taken to
	for part.len() > 1 {
		middle, hi := part.lo+part.len()/2, part.hi
		named, ok := s.named(part, fault)
		switch {
		case ok && believed: // the table came by here before, and stumbled later
			s.hint = nil
		case ok:
			middle, hi, believed = named, named+1, true
		}
		if middle > part.lo {
			left := span{part.lo, middle}
			refused, end := s.write(ctx, left)
			if end != nil {
				return end
			}
			if refused != nil {
				part, fault, asked = left, refused, true
				continue
			}
		}
		part, fault, asked = span{middle, hi}, nil, false
	}
	before := len(s.result.Suspects)
	end = s.single(ctx, part, asked)
	if believed && len(s.result.Suspects) == before {
		s.hint = nil
	}
	return end
}

// single finds one item a suspect, or writes it. asked says that it failed
// alone just now.
func (s *search[T]) single(ctx context.Context, one span, asked bool) (end error) {
	if !asked {
		fault, end := s.write(ctx, one)
		if fault == nil {
			return end
		}
	}
	fault, end := s.try(ctx, s.items[one.lo:one.hi:one.hi], true)
	if end != nil {
		return end
	}
	if fault != nil {
		s.result.Suspects = append(s.result.Suspects, Suspect[T]{Item: s.items[one.lo], Err: fault})
	}
	s.at = one.hi
	return nil
}

// named is the place in the set of the item that an error names.
func (s *search[T]) named(part span, fault error) (place int, ok bool) {
	if s.hint == nil || fault == nil {
		return 0, false
	}
	index, ok := s.hint(fault, s.items[part.lo:part.hi:part.hi])
	return part.lo + index, ok && index >= 0 && index < part.len()
}

// write asks for the part that comes next.
func (s *search[T]) write(ctx context.Context, part span) (fault, end error) {
	fault, end = s.try(ctx, s.items[part.lo:part.hi:part.hi], false)
	if fault == nil && end == nil {
		s.at = part.hi
	}
	return fault, end
}

// try asks for one part. fault is an error that may be the part's, end one
// that ends the search; both are nil when the part is written.
func (s *search[T]) try(ctx context.Context, part []T, again bool) (fault, end error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if again {
		s.result.Confirmed++
	} else {
		s.result.Asked++
	}
	err := s.ask(ctx, part, again)
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

// end gives up: what is neither written nor a suspect has no home, and neither
// have the suspects.
func (s *search[T]) end(err error) Result[T] {
	homeless := s.items[s.at:len(s.items):len(s.items)]
	if n := len(s.result.Suspects); n > 0 {
		all := make([]T, 0, n+len(homeless))
		for _, suspect := range s.result.Suspects {
			all = append(all, suspect.Item)
		}
		homeless = append(all, homeless...)
	}
	return Result[T]{Homeless: homeless, Err: err, Asked: s.result.Asked, Confirmed: s.result.Confirmed}
}
