package columnar

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"time"
)

const hexDigits = "0123456789abcdef"

// quoted appends a JSON string as Postgres writes it.
func quoted(to, text []byte) []byte {
	to = append(to, '"')
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\b':
			to = append(to, `\b`...)
		case '\f':
			to = append(to, `\f`...)
		case '\n':
			to = append(to, `\n`...)
		case '\r':
			to = append(to, `\r`...)
		case '\t':
			to = append(to, `\t`...)
		default:
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(to, text[from:]...), '"')
}

// timeForm is the form of timestamptz in JSON, in UTC.
const timeForm = "2006-01-02T15:04:05.999999"

// quotedTime appends a time in microseconds since 1970 as Postgres writes it.
func quotedTime(to []byte, micros int64) []byte {
	to = append(to, '"')
	to = stamp(to, micros)
	return append(to, `+00:00"`...)
}

// stamp appends date and time without a zone. Zeros at the end of a fraction are left out.
func stamp(to []byte, micros int64) []byte {
	t := time.UnixMicro(micros).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	if year < 1000 || year > 9999 {
		return t.AppendFormat(to, timeForm)
	}
	to = strconv.AppendInt(to, int64(year), 10)
	to = two(append(to, '-'), int(month))
	to = two(append(to, '-'), day)
	to = two(append(to, 'T'), hour)
	to = two(append(to, ':'), minute)
	to = two(append(to, ':'), second)
	if f := t.Nanosecond() / 1000; f > 0 {
		to = fraction(to, f, 6)
	}
	return to
}

func two(to []byte, n int) []byte { return append(to, byte('0'+n/10), byte('0'+n%10)) }

// fraction appends a point and so many digits, without zeros at the end.
func fraction(to []byte, f, digits int) []byte {
	var b [10]byte
	b[0] = '.'
	for i := digits; i > 0; i-- {
		b[i], f = byte('0'+f%10), f/10
	}
	return append(to, bytes.TrimRight(b[:digits+1], "0")...)
}

// Time reads a time of a line, with its quotes, in microseconds since 1970. It has a year of four digits and is in UTC, as
// Postgres writes it. ok is false for any other.
func Time(cell []byte) (micros int64, ok bool) { return readTime(cell) }

// readTime reads what quotedTime writes.
func readTime(value []byte) (micros int64, ok bool) {
	const least = len(`"2006-01-02T15:04:05+00:00"`)
	if len(value) < least || len(value) > least+7 || string(value[len(value)-7:]) != `+00:00"` {
		return 0, false
	}
	v := value[1 : len(value)-7]
	n := func(from, digits int) int {
		sum := 0
		for _, c := range v[from : from+digits] {
			if c < '0' || c > '9' {
				ok = false
			}
			sum = sum*10 + int(c-'0')
		}
		return sum
	}
	ok = true
	year, month, day, hour, minute, second, micro := n(0, 4), n(5, 2), n(8, 2), n(11, 2), n(14, 2), n(17, 2), 0
	if len(v) > 20 {
		micro = n(20, len(v)-20)
		for i := len(v) - 20; i < 6; i++ {
			micro *= 10
		}
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, micro*1000, time.UTC).UnixMicro(), ok
}

// readBytes reads a bytea: \x and pairs of digits, in a JSON string.
func readBytes(to, value []byte) ([]byte, bool) {
	const start = `"\\x`
	if !bytes.HasPrefix(value, []byte(start)) {
		return to, false
	}
	to, err := hex.AppendDecode(to, value[len(start):len(value)-1])
	return to, err == nil
}

// quotedBytes appends what readBytes reads.
func quotedBytes(to, b []byte) []byte {
	to = append(to, `"\\x`...)
	return append(hex.AppendEncode(to, b), '"')
}
