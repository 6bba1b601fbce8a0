package cli

import (
	"bytes"
	"strings"
	"testing"

	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/service/config"
)

// TestWhereIs_Forgotten: a day that was given up on purpose is told with its name. It does not hide that a decision of another
// day has no home: verify tells which it is.
func TestWhereIs_Forgotten(t *testing.T) {
	t.Parallel()
	const note = "archived days in here: 2026-08-01 was forgotten on purpose by mara at 2026-11-22T09:12:40Z: over"
	at := verify.Place{Topic: "logs", Offset: 7}
	for name, c := range map[string]struct {
		records []inspect.Record
		says    string
	}{
		"an id that is nowhere":     {nil, "not found in there\n"},
		"a record that Kafka keeps": {[]inspect.Record{{Place: at, Committed: 9, Decisions: []inspect.Decision{{Place: at, ID: "d"}}}}, "Unless it was in a place that was given up on purpose, this should never happen: run `consumer verify --from logs/0/7`"},
	} {
		var out bytes.Buffer
		code := showWhere(&out, config.Settings{KafkaTopic: "logs"}, &inspect.Whereabouts{Records: c.records, Looked: []string{"there"}, Forgotten: []string{note}})
		for _, not := range []string{"not known", "not searched completely"} {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s says %q", name, not)
			}
		}
		if text := out.String(); code != Failed || !strings.Contains(text, c.says) || !strings.HasSuffix(text, "given up: "+note+"\n") {
			t.Errorf("%s: exit %d\n%s", name, code, text)
		}
	}
}
