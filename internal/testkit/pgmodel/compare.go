package pgmodel

import (
	"bytes"
	"fmt"
)

// compare answers, for each row that is there, whether raw is equal to what was sent.
func (s *session) compare(p *portal) (answer, *failure) {
	if f := s.usesTable(); f != nil {
		return answer{}, f
	}
	var a answer
	for i := range p.rows {
		r := &p.rows[i]
		there := s.visible(r)
		if there == nil {
			continue
		}
		if r.Raw == nil || there.Unfaithful {
			a.rows = append(a.rows, []value{int64(i + 1), false})
			continue
		}
		equal, f := there.equals(r.Raw)
		if f != nil {
			return answer{}, f
		}
		a.rows = append(a.rows, []value{int64(i + 1), equal})
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	a.tag = fmt.Sprintf("SELECT %d", len(a.rows))
	return a, s.interrupted()
}

// known names the rows that are there, n where the bytes of the payload are the same and -n where that is not known.
func (s *session) known(p *portal) (answer, *failure) {
	if f := s.usesTable(); f != nil {
		return answer{}, f
	}
	var there []int64
	for i := range p.rows {
		r, n := &p.rows[i], int64(i+1)
		t := s.visible(r)
		if t == nil {
			continue
		}
		if t.Sum == nil || !bytes.Equal(t.Sum, r.Sum) {
			n = -n
		}
		there = append(there, n)
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if there == nil {
		return answer{tag: "SELECT 1", rows: [][]value{{nil}}}, s.interrupted()
	}
	return answer{tag: "SELECT 1", rows: [][]value{{there}}}, s.interrupted()
}

// visible gives the row with the same identity that the session sees: a committed one, or its own.
func (s *session) visible(r *Row) *tuple {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	t := s.server.rows[r.key()]
	if t == nil || t.owner != nil && t.owner != s.tx {
		return nil
	}
	return t
}
