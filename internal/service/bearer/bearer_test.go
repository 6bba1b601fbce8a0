package bearer

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

const token = "secretsecretsecret"

func TestParse_Forms(t *testing.T) {
	t.Parallel()
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token)))
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for text, last := range map[string]string{ // the last moment at which it holds
		token:                                "",
		hash:                                 "",
		strings.ToUpper(hash[7:]):            "", // a token of digits, not a hash
		token + ":until=2027-01-31":          "2027-01-31T23:59:59.999999999Z",
		hash + ":until=2027-01-31":           "2027-01-31T23:59:59.999999999Z",
		hash + ":until=2027-01-31T12:30:00Z": "2027-01-31T12:29:59.999999999Z",
		token + ":until=2027-01-31T12:30:00+02:00": "2027-01-31T10:29:59.999999999Z",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		presented, ok := Header("Bearer " + token)
		if want := !strings.HasPrefix(text, strings.ToUpper(hash[7:])); !ok || s.Is(presented) != want {
			t.Errorf("%q is the token: %v, want %v", text, s.Is(presented), want)
		}
		if shown := fmt.Sprintf("%v %+v %#v", s, s, s); strings.Contains(shown, token) {
			t.Errorf("%q keeps the token", text)
		}
		if last == "" {
			if s.Expired(at("9999-01-01T00:00:00Z")) {
				t.Errorf("%q expires", text)
			}
			continue
		}
		if end := at(last); s.Expired(end) || !s.Expired(end.Add(1)) {
			t.Errorf("%q does not expire after %s", text, last)
		}
	}
}

func TestParse_Complaints(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                                           "fewer than 16",
		"secret":                                     "fewer than 16",
		strings.Repeat("s", 513):                     "more than 512",
		token + "ü":                                  "header",
		token + ":":                                  "header",
		token + ":2027-01-31":                        "header",
		"sha256:" + token:                            "64 hexadecimal",
		"sha256:" + strings.Repeat("5ec", 21):        "64 hexadecimal",
		"sha256:" + strings.Repeat("5e", 33):         "64 hexadecimal",
		"SHA256:" + strings.Repeat("5e", 32):         "header",
		token + ":until=":                            "date",
		token + ":until=secret":                      "date",
		token + ":until=2027-02-30":                  "date",
		token + ":until=2027-01-31T12:00:00":         "date",
		token + ":until=2027-01-31:until=2028-01-31": "date",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}

func TestHeader_Refused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "Bearer", token, "Basic " + token, "Bearer " + strings.Repeat("s", 513)} {
		if _, ok := Header(value); ok {
			t.Errorf("%q was taken", value)
		}
	}
	a, ok := Header("bEARER " + token)
	if b, _ := Header("Bearer " + token + "x"); !ok || a == b {
		t.Error("not the token is hashed")
	}
}
