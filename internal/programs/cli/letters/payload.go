package letters

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/term"
)

// shownPayload is how many bytes of a payload are printed for people; --raw prints all.
const shownPayload = 16 << 10

// errInflates says that a gzip value cannot be read, or is larger than any record may be.
var errInflates = errors.New("the gzip value is damaged or too large to show; --raw prints its bytes")

// Inflate is a value after gunzip, where it is gzip.
func Inflate(value []byte, most int64) (plainValue []byte, zipped bool, err error) {
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

// embedded is a value for an answer in JSON: as it is where it is JSON, else as bytes for base64.
func embedded(value []byte) (asJSON json.RawMessage, asBytes []byte) {
	if term.IsJSON(value) {
		return value, nil
	}
	return nil, value
}

// value shows the value of a dead letter, or says how to see it.
func (sh *show) value(e ledger.Entry) {
	value := e.Value
	switch {
	case e.Withheld != nil:
		sh.Say("  %s, hidden because it may hold personal data; --payload shows it\n", term.Counted(int64(*e.Withheld), "byte"))
		return
	case value == nil:
		sh.Say("  none: the record has no value (a tombstone)\n")
		return
	case !sh.payload:
		sh.Say("  %s, hidden because it may hold personal data; --payload shows it\n", term.Counted(int64(len(value)), "byte"))
		return
	}
	text, zipped, err := Inflate(value, int64(sh.Settings.MaxRecordBytes))
	if err != nil {
		sh.Say("  %s: %v\n", term.Counted(int64(len(value)), "byte"), err)
		return
	}
	how := ""
	if zipped {
		how = ", gzip, " + term.Grouped(int64(len(text))) + " after gunzip"
	}
	sh.Say("  %s%s\n", term.Counted(int64(len(value)), "byte"), how)
	shown := term.Pretty(text)
	rest := 0
	if len(shown) > shownPayload {
		cut := shownPayload
		for cut > 0 && !utf8.RuneStart(shown[cut]) {
			cut--
		}
		shown, rest = shown[:cut], len(shown)-cut
	}
	sh.Say("%s\n", term.Lines(shown))
	if rest > 0 {
		sh.Say("  ... and %s more; --raw > FILE saves all of it\n", term.Counted(int64(rest), "byte"))
	}
}
