package decision

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// FuzzGunzip: nothing panics, nothing beyond the limit is kept, and accepted values inflate as in the standard
// library.
func FuzzGunzip(f *testing.F) {
	for _, text := range []string{"", "{}", strings.Repeat("a", 3000)} {
		f.Add(zip(f, text), 100)
	}
	two := append(zip(f, "one"), zip(f, "two")...)
	f.Add(two, 6)
	f.Add(append(two, 0), 6)
	f.Add(two[:len(two)-3], 6)
	f.Fuzz(func(t *testing.T, value []byte, most int) {
		most = max(0, min(most, 1<<16))
		plain, refusal := gunzip(value, int64(most))
		var want []byte
		r, err := gzip.NewReader(bytes.NewReader(value))
		if err == nil {
			want, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
		}
		switch {
		case refusal == nil && (err != nil || !bytes.Equal(plain, want)):
			t.Fatalf("inflated to %q, the standard library says %q, %v", plain, want, err)
		case refusal != nil && err == nil && len(want) <= most && !reserved(value):
			t.Fatalf("refused as %v, the standard library inflates it to %q", refusal, want)
		case refusal != nil && plain != nil:
			t.Fatalf("refused, and yet %d bytes", len(plain))
		}
	})
}

// reserved reports whether a member may have a flag that RFC 1952 reserves. The decoder refuses it, and the standard
// library reads it.
func reserved(value []byte) bool {
	for i := range value {
		if rest := value[i:]; len(rest) > 3 && bytes.HasPrefix(rest, []byte{0x1f, 0x8b, 8}) && rest[3]>>5 != 0 {
			return true
		}
	}
	return false
}

// FuzzTimestamp: accepted timestamps are those of the standard library, cut to microseconds.
func FuzzTimestamp(f *testing.F) {
	for _, at := range []string{
		"2026-03-04T12:00:00Z", "2026-03-04t12:00:00.123456789z", "2016-12-31T23:59:60Z", "2016-12-31T18:59:60.5-05:00",
		"2024-02-29T00:00:00+23:59", "2023-02-29T00:00:00Z", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59.9999999-00:01", "2026-03-04T24:00:00Z",
		"2026-03-04T12:00:00,5Z", "2026-03-04T12:00:00.Z", "2026-03-04 12:00:00Z", "2026-03-04T12:00:00+24:00", "",
	} {
		f.Add(at)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseTime([]byte(text))
		upper := strings.ToUpper(text)
		if leap := len(upper) > 19 && upper[17:19] == "60"; leap { // the standard library knows no leap seconds
			if !ok {
				return
			}
			upper = upper[:17] + "59" + upper[19:]
			got = got.Add(-time.Second)
		}
		if strings.ContainsAny(upper, ",") { // the standard library accepts a comma for the point, RFC 3339 does not
			if ok {
				t.Fatalf("%q read as %v", text, got)
			}
			return
		}
		want, err := time.Parse(time.RFC3339Nano, upper)
		if _, zone := want.Zone(); err == nil && max(zone, -zone) >= 24*3600 || len(upper) > 13 && upper[12] == ':' {
			err = errors.New("lenient") // the standard library accepts a zone of a whole day, and an hour of one digit
		}
		switch {
		case ok && (err != nil || !got.Equal(want.Truncate(time.Microsecond))):
			t.Fatalf("%q read as %v, the standard library says %v, %v", text, got, want, err)
		case !ok && err == nil:
			t.Fatalf("%q refused, the standard library reads %v", text, want)
		}
	})
}
