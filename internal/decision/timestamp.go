package decision

import "time"

// parseTime reads an RFC 3339 timestamp and cuts it to microseconds. T and Z may be lower case, a space for the T may
// not stand, and the fraction may have any number of digits. Second 60 is taken only where a leap second can be, at
// 23:59:60 UTC on the last day of a month, and is then the first second of the next day, as Postgres reads it.
func parseTime(b []byte) (time.Time, bool) {
	const layout = "0000-00-00T00:00:00"
	if len(b) < len(layout) || b[10]|0x20 != 't' || b[4] != '-' || b[7] != '-' || b[13] != ':' || b[16] != ':' {
		return time.Time{}, false
	}
	century, year, month, day := two(b[0:]), two(b[2:]), two(b[5:]), two(b[8:])
	hour, minute, second := two(b[11:]), two(b[14:]), two(b[17:])
	if century < 0 || year < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return time.Time{}, false
	}
	year += 100 * century
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return time.Time{}, false
	}
	micros, rest, ok := fraction(b[len(layout):])
	if !ok {
		return time.Time{}, false
	}
	east, ok := offset(rest)
	if !ok {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute-east, second, micros*1000, time.UTC)
	if second == 60 && (t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0) {
		return time.Time{}, false
	}
	return t, true
}

// fraction reads the fraction of a second, if there is one, as whole microseconds.
func fraction(b []byte) (micros int, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b, true
	}
	i, unit := 1, 100_000
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		micros += int(b[i]-'0') * unit
		unit /= 10
	}
	return micros, b[i:], i > 1
}

// offset reads the offset from UTC, which must end the timestamp, as minutes to the east.
func offset(b []byte) (minutes int, ok bool) {
	if len(b) == 1 {
		return 0, b[0]|0x20 == 'z'
	}
	if len(b) != len("+00:00") || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	h, m := two(b[1:]), two(b[4:])
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, false
	}
	minutes = 60*h + m
	if b[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// two reads two digits, or returns -1.
func two(b []byte) int {
	if b[0]-'0' > 9 || b[1]-'0' > 9 {
		return -1
	}
	return int(b[0]-'0')*10 + int(b[1]-'0')
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}
