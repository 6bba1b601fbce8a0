package address

import (
	"strings"
	"testing"
)

func TestParse_Rules(t *testing.T) {
	t.Parallel()
	const shy = "hunter2marker"
	for text, says := range map[string]string{
		"https://desk.example:8083": "", "https://desk.example/docket/": "", "http://127.0.0.1:8083": "", "http://[::1]:8083": "", "http://localhost": "",
		"desk.example:8083": "must be a URL", "ftp://desk": "must be a URL", "https://": "must be a URL", "https://me:" + shy + "@de sk": "must be a URL",
		"https://me:" + shy + "@desk": "must not hold a password", "https://" + shy + "@desk": "must not hold a password", "http://me:" + shy + "@desk": "must not hold a password",
		"https://desk?token=" + shy: "must end with its path", "https://desk#" + shy: "must end with its path", "https://desk?": "must end with its path",
		"http://desk.example": "in clear to desk.example", "http://localhost.example": "in clear",
	} {
		_, err := Parse(text, false)
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), shy)):
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Parse("http://desk.example", true); err != nil {
		t.Error(err)
	}
}
