package decision

// Limits of Postgres's numeric, from its source: a display scale of 14 bits, a weight of 16 bits in digits of base
// 10,000, and an exponent up to half of an int32.
const (
	maxScale    = 16_383
	maxLeading  = 131_071 // power of ten of the first digit that is not 0
	maxExponent = 1<<30 - 1
)

// number scans a number and marks one that numeric cannot hold.
func (s *scanner) number() bool {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	integer := s.digits()
	if len(integer) == 0 || len(integer) > 1 && integer[0] == '0' {
		return false
	}
	var fraction []byte
	if s.peek() == '.' {
		s.pos++
		if fraction = s.digits(); len(fraction) == 0 {
			return false
		}
	}
	exponent := 0
	if c := s.peek(); c == 'e' || c == 'E' {
		var ok bool
		if exponent, ok = s.exponent(); !ok {
			return false
		}
	}
	if !numericHolds(integer, fraction, exponent) {
		s.mark(start)
	} else if exponent != 0 {
		s.expanded += numericText(integer, fraction, exponent)
	}
	return true
}

// numericText returns the number of bytes in which numeric prints a number that it holds, without a sign.
func numericText(integer, fraction []byte, exponent int) int64 {
	text := 1
	for i, c := range integer {
		if c != '0' {
			text = max(text, len(integer)-i+exponent)
			break
		}
	}
	if text == 1 && integer[0] == '0' {
		for i, c := range fraction {
			if c != '0' {
				text = max(text, exponent-i)
				break
			}
		}
	}
	if scale := len(fraction) - exponent; scale > 0 {
		text += 1 + scale
	}
	return int64(text)
}

func (s *scanner) digits() []byte {
	start := s.pos
	for s.pos < len(s.src) && s.src[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.src[start:s.pos]
}

// exponent scans an exponent. Its exact value does not matter beyond ±maxExponent.
func (s *scanner) exponent() (int, bool) {
	s.pos++
	sign := 1
	switch s.peek() {
	case '-':
		sign = -1
		s.pos++
	case '+':
		s.pos++
	}
	digits := s.digits()
	n := 0
	for _, c := range digits {
		n = min(n*10+int(c-'0'), maxExponent+1)
	}
	return sign * n, len(digits) > 0
}

// numericHolds reports whether Postgres's numeric can hold the number. Zeros count: 0e-16384 has too large a scale.
// At exactly maxExponent releases disagree about 0e1073741823, so the database decides.
func numericHolds(integer, fraction []byte, exponent int) bool {
	if exponent > maxExponent || exponent < -maxExponent || len(fraction)-exponent > maxScale {
		return false
	}
	if len(integer)+exponent <= maxLeading { // the first digit does not matter
		return true
	}
	for i, c := range integer {
		if c != '0' {
			return len(integer)-1-i+exponent <= maxLeading
		}
	}
	for i, c := range fraction {
		if c != '0' {
			return exponent-1-i <= maxLeading
		}
	}
	return true
}
