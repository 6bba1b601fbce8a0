package deskcli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"docket/internal/programs/cli"
)

// shownPayload is how many bytes of a payload are shown to people; --raw gives all.
const shownPayload = 16 << 10

// errInflates says that a gzip value cannot be read, or is larger than any record may be.
var errInflates = errors.New("the gzip value is damaged or too large to show; --raw prints its bytes")

// inflated is a value after gunzip, where it is gzip.
func inflated(value []byte, most int64) (plainValue []byte, zipped bool, err error) {
	if !bytes.HasPrefix(value, []byte{0x1f, 0x8b}) {
		return value, false, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, true, errInflates
	}
	out, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil || int64(len(out)) > most {
		return nil, true, errInflates
	}
	return out, true, nil
}

// isJSON says that a value is JSON and nothing is lost by showing it as such.
func isJSON(value []byte) bool { return utf8.Valid(value) && json.Valid(value) }

// pretty is a value as people read it: JSON indented, everything else as it is.
func pretty(value []byte) string {
	if !isJSON(value) {
		return string(value)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil {
		return string(value)
	}
	return b.String()
}

// embedded is a value in JSON: as it is where it is JSON, else for base64.
func embedded(value []byte) (asJSON json.RawMessage, asBytes []byte) {
	if isJSON(value) {
		return value, nil
	}
	return nil, value
}

// payload shows a letter's value, or says how to see it.
func (s *session) payload(value []byte, show bool) {
	switch {
	case value == nil:
		s.say("  none: the record has no value (a tombstone)\n")
		return
	case !show:
		s.say("  %s, hidden because it may hold personal data; --payload shows it\n", counted(int64(len(value)), "byte"))
		return
	}
	text, zipped, err := inflated(value, int64(s.settings.MaxRecordBytes))
	if err != nil {
		s.say("  %s: %v\n", counted(int64(len(value)), "byte"), err)
		return
	}
	how := ""
	if zipped {
		how = ", gzip, " + cli.Grouped(int64(len(text))) + " after gunzip"
	}
	s.say("  %s%s\n", counted(int64(len(value)), "byte"), how)
	shown := pretty(text)
	rest := 0
	if len(shown) > shownPayload {
		cut := shownPayload
		for cut > 0 && !utf8.RuneStart(shown[cut]) {
			cut--
		}
		shown, rest = shown[:cut], len(shown)-cut
	}
	s.say("%s\n", plainLines(shown))
	if rest > 0 {
		s.say("  ... and %s more; --raw > FILE saves all of it\n", counted(int64(rest), "byte"))
	}
}
