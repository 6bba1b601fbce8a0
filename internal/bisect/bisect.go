package bisect

import (
	"context"
	"slices"
)

// Answer is the judgement on one error. Its zero value ends the search, so that an error without a judgement blames
// no item.
type Answer uint8

const (
	// End says that no item is to blame, not even for earlier errors, because something else is at fault.
	End Answer = iota
	// Divide says that one item may be at fault, so the search continues.
	Divide
)

// Suspect is an item that failed alone, twice.
type Suspect[T any] struct {
	Item T
	// Err is the error of its second failure.
	Err error
}

// Result says what became of the items. Each is a suspect or homeless, or in neither list and then written.
type Result[T any] struct {
	// Suspects are the bad items, in the order of the set. It is empty if Err is set.
	Suspects []Suspect[T]
	// Homeless are the items that are not written and not to blame, in the order of the set. If Err ended the search,
	// these are all unwritten items. It may share memory with the set.
	Homeless []T
	// Err ended the search: the error that was judged End, or ctx.Err(). It is nil if the search finished.
	Err error
	// Asked counts the calls of ask without the confirmations. The earlier write of the whole set is not counted.
	Asked int
	// Confirmed counts the second calls for single items.
	Confirmed int
}

// Isolate finds the bad items of a set whose write as a whole failed with first, and writes all others.
//
// ask writes a part, all of it or nothing. A nil error means written for good. If again is true, the part is one item
// that has just failed alone; then the caller uses a fresh connection. Function ask must not keep or change the part.
//
// judge is called for every error, first included. End ends the search at once. Unwritten items are then homeless,
// and so are the suspects found so far, because the system that refused them was about to fail. A context that is
// done ends the search too, whatever error the interrupted ask returned.
//
// hint returns the item of the part at which the table stopped, as the error says. It may be nil. It only says where
// to look: a suspect is still asked alone, twice. After one wrong hint no other is used.
//
// Parts are written in the order of the set, so of two items that exclude each other the earlier wins. Only the first
// item that a hint names is tried after later ones. The table came to it before those, so it does not fail because of
// them. For a set of one, first counts as its first failure alone. A nil first means that the whole set was not asked
// yet.
//
// The package documentation says how many writes it takes, and how many items are sent.
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

// search goes through the set from left to right, one stretch after another.
type search[T any] struct {
	items  []T
	ask    func(ctx context.Context, part []T, again bool) error
	judge  func(error) Answer
	hint   func(err error, part []T) (int, bool) // nil: none, or no longer used
	at     int                                   // all before it are written or suspects, none from it on
	result Result[T]
}

// span is the part of the set from lo up to hi, without hi.
type span struct{ lo, hi int }

func (s span) len() int { return s.hi - s.lo }

// run writes stretches. Each is twice as long as the one before while nothing fails. After a bad item the next one is
// as long as the way to that item, and at most half of the failed stretch.
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

// spare handles the failure of the whole set. A named item may be the only bad one: then the others need a single
// write.
func (s *search[T]) spare(ctx context.Context, whole span, fault error) (end error) {
	named, ok := s.named(whole, fault)
	if !ok || whole.len() <= 2 { // the rest of two would be asked alone
		return s.pin(ctx, whole, fault)
	}
	others, end := s.try(ctx, slices.Concat(s.items[:named], s.items[named+1:]), false)
	switch {
	case end != nil:
		return end
	case others != nil: // there is more than one bad item
		return s.pin(ctx, whole, fault)
	}
	s.items = s.items[named : named+1 : named+1]
	return s.single(ctx, span{0, 1}, false)
}

// pin writes the items before the first bad one of a failed part. If the bad one also fails alone, it is a suspect.
func (s *search[T]) pin(ctx context.Context, part span, fault error) (end error) {
	asked, believed := true, false // whether the part failed, or is only assumed to
	for part.len() > 1 {
		middle, hi := part.lo+part.len()/2, part.hi
		named, ok := s.named(part, fault)
		switch {
		case ok && believed: // the table came past this place before, and stopped later
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

// single makes one item a suspect, or writes it. asked says that it has just failed alone.
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

// named returns the place in the set of the item that an error names.
func (s *search[T]) named(part span, fault error) (place int, ok bool) {
	if s.hint == nil || fault == nil {
		return 0, false
	}
	index, ok := s.hint(fault, s.items[part.lo:part.hi:part.hi])
	return part.lo + index, ok && index >= 0 && index < part.len()
}

// write asks for the next part.
func (s *search[T]) write(ctx context.Context, part span) (fault, end error) {
	fault, end = s.try(ctx, s.items[part.lo:part.hi:part.hi], false)
	if fault == nil && end == nil {
		s.at = part.hi
	}
	return fault, end
}

// try asks for one part. fault is an error that may be the part's; end is an error that ends the search. Both are nil
// if the part is written.
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

// end ends the search without suspects: all unwritten items are homeless.
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
