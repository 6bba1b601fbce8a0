package decision

import (
	"strings"
	"testing"
)

// The cases of this file were tried on a PostgreSQL 15.18 (UTF-8) with `SELECT …::jsonb`. The word true means that it
// accepted the value. Otherwise it answered 22003, 22P05 or, for a lone surrogate, 22P02, so that a twin is stored.

func TestRange_Numbers(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	for number, held := range map[string]bool{
		"1e-16383": true, "1e-16384": false, "1e-20000": false,
		"1e131071": true, "1e131072": false, "-1e131071": true, "-1e131072": false, "1E+131071": true, "1e00000000000000000005": true,
		"9.99e131071": true, "99e131070": true, "99e131071": false, "0.0001e131075": true, "0.0001e131076": false,
		"0e131072": true, "0e999999999": true, "0e1073741822": true, "0e1073741824": false, "1e1073741822": false,
		"0e99999999999999999999": false, "0e-99999999999999999999": false, "1e99999999999999999999": false,
		"0e-16383": true, "0e-16384": false, "0.0e-16382": true, "0.0e-16383": false,
		"1.0e-16382": true, "1.0e-16383": false, "10e-16384": false, "1.5e16384": true, "-0": true, "-0.0": true, "0e-0": true,
		rep("9", 131_072): true, rep("9", 131_073): false, rep("9", 131_073) + "e-1": true, rep("9", 131_074) + "e-2": true,
		"1." + rep("1", 16_383): true, "1." + rep("1", 16_384): false, "1." + rep("0", 16_384): false, "1." + rep("0", 16_384) + "e1": true,
		"0." + rep("0", 16_384) + "e1": true, "0." + rep("0", 16_382) + "1": true, "0." + rep("0", 16_383) + "1": false,
		"0." + rep("0", 20_000) + "1e20000": true, "0." + rep("0", 20_000) + "1e3000": false,
		"0." + rep("0", 20_000) + "1e3618": true, "0." + rep("0", 20_000) + "1e3617": false,
	} {
		room := `"room":"` + rep("x", 40_000) + `"` // for the text of the number
		for _, member := range []string{`"a":` + number, `"a":[{"b":[` + number + `]}]`, `"result":{"allow":` + number + `}`} {
			if got := only(t, good(member, room)); got.Err != nil || (got.Log.Unfaithful == nil) != held {
				t.Errorf("%.40s: got %v, faithful %v, want %v", member, got.Err, got.Log.Unfaithful == nil, held)
			}
		}
	}
}

// Releases before 16 refuse this zero and later ones accept it, so the database decides.
func TestRange_NumberThatReleasesDisagreeOn(t *testing.T) {
	t.Parallel()
	if got := only(t, good(`"a":0e1073741823`)); got.Err != nil || got.Log.Unfaithful != nil {
		t.Errorf("got %+v", got)
	}
}

func TestRange_Strings(t *testing.T) {
	t.Parallel()
	for text, held := range map[string]bool{
		`\u0000`: false, `a\u0000b`: false, `\\u0000`: true, `\\\u0000`: false, `\u0001`: true, `\u00000`: false, "\x7f": true, `\u007f`: true,
		`\ud800`: false, `\udfff`: false, `\uDC00`: false, `\ud83dx`: false, `\ud83d\n`: false, `\ud83d\u0041`: false,
		`\ud83d\\ude00`: false, `\ud83d\ud83d\ude00`: false, `\ude00\ud83d`: false, `\ud83d \ude00`: false, `\ud83d\ude00\ude00`: false,
		`\ud83d\ude00`: true, `\uD800\uDC00`: true, `\uDBFF\uDFFF`: true, `\ud7ff\ue000`: true, `\uffff`: true, `\ufffe`: true,
		"\uffff": true, "\ufffe": true, "\U0010ffff": true, `\ufffd`: true,
	} {
		for _, member := range []string{
			`"a":"` + text + `"`, `"` + text + `":1`, `"a":[{"` + text + `":[]}]`, `"path":"` + text + `"`,
			`"labels":{"id":"` + text + `"}`, `"result":{"` + text + `":true}`,
		} {
			if got := only(t, good(member)); got.Err != nil || (got.Log.Unfaithful == nil) != held {
				t.Errorf("%s: got %v, faithful %v, want %v", member, got.Err, got.Log.Unfaithful == nil, held)
			}
		}
	}
}

func TestRange_OneOfSeveralDecisions(t *testing.T) {
	t.Parallel()
	bad := strings.Replace(good(), "d1", `\ud800`, 1)
	value := "[" + bad + "," + good() + "," + bad + "," + good(`"a":1`) + "]"
	if got := told([]byte(value), limit); got != "out_of_range d1 out_of_range d1" {
		t.Errorf("got %q", got)
	}
}
