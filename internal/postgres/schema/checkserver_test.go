package schema

import (
	"strings"
	"testing"
)

func TestServerCheck_Levels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		number   int
		encoding string
		level    Level
		says     string
	}{
		"too old for the migrations": {130022, "UTF8", Fail, "use PostgreSQL 14 or later"},
		"the oldest":                 {140000, "UTF8", OK, ""},
		"another encoding":           {180001, "LATIN1", Warn, "22P05"},
	} {
		got := judgeServer(c.number, c.encoding)
		if got.Level != c.level || !strings.Contains(got.Hint, c.says) || c.says == "" && got.Hint != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
