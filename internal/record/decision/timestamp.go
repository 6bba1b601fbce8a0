package decision

import (
	"encoding/binary"
	"time"
)

// parseTime reads an RFC 3339 timestamp and cuts it to microseconds. T and Z may be lower case. A space instead of
// the T is refused. The fraction may have any number of digits. Second 60 is accepted only at a possible leap second,
// 23:59:60 UTC on the last day of a month. It is then the first second of the next day, as in Postgres.
func parseTime(b []byte) (time.Time, bool) {
	const layout = "0000-00-00T00:00:00"
	if len(b) < len(layout) || b[16] != ':' {
		return time.Time{}, false
	}
	date, ok1 := pairs(binary.LittleEndian.Uint64(b), layoutDate, sevensDate)
	clock, ok2 := pairs(binary.LittleEndian.Uint64(b[8:])|0x20<<16, layoutClock, sevensClock)
	year, month, day := 100*int(date&0xff)+int(date>>16&0xff), int(date>>40&0xff), int(clock&0xff)
	hour, minute, second := int(clock>>24&0xff), int(clock>>48&0xff), two(b[17:])
	if !ok1 || !ok2 || hour > 23 || minute > 59 || second < 0 || second > 60 {
		return time.Time{}, false
	}
	if month < 1 || month > 12 || day < 1 || day > 28 && day > daysIn(year, month) {
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
	minutes := (daysUntil(year, month)+day-1-daysUntil1970)*24*60 + hour*60 + minute - east
	t := time.Unix(int64(minutes)*60+int64(second), int64(micros)*1000).UTC()
	if second == 60 && (t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0) {
		return time.Time{}, false
	}
	return t, true
}

// Eight bytes of the layout, and an addend for bytes that are xor-ed with them. The sum has the highest bit of a byte
// set if the byte is not a digit, or not the layout's separator.
const (
	layoutDate  = '0'*ones - '0'<<32 + '-'<<32 - '0'<<56 + '-'<<56 // 0000-00-
	layoutClock = '0'*ones - '0'<<16 + 't'<<16 - '0'<<40 + ':'<<40 // 00t00:00
	sevensDate  = 0x76*ones + 9<<32 + 9<<56
	sevensClock = 0x76*ones + 9<<16 + 9<<40
)

// pairs reads eight bytes of a timestamp. Byte i of the result is the number that digits i and i+1 make.
func pairs(w, layout, sevens uint64) (uint64, bool) {
	w ^= layout
	return w*10 + w>>8, (w|(w+sevens))&highs == 0
}

// fraction reads the fraction of a second, if there is one, as whole microseconds.
func fraction(b []byte) (micros int, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b, true
	}
	i := 1
	for ; i < len(b) && i <= 6 && b[i]-'0' <= 9; i++ {
		micros = 10*micros + int(b[i]-'0')
	}
	if i <= 6 {
		return micros * powers[7-i], b[i:], i > 1
	}
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return micros, b[i:], true
}

var powers = [...]int{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}

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

// daysUntil counts the days before a month, from 400 years before the year 1 on.
func daysUntil(year, month int) int {
	whole := year + 399
	days := 365*whole + whole/4 - whole/100 + whole/400 + daysBefore[month-1]
	if month > 2 && isLeap(year) {
		days++
	}
	return days
}

const daysUntil1970 = 865_259

var daysBefore = [12]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int) int {
	switch month {
	case 2:
		if isLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}
