package collectorapp

import (
	"errors"
	"strings"
	"testing"

	"docket/internal/config"
)

func TestKeyThatIsTakenOutOfDecisionsIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, drop, mask, with string
	}{
		{"requested_by", "", "/requested_by", maskVariable},
		{"requested_by:host", "/requested_by", "", dropVariable},
		{"label:tenant", "/labels", "", dropVariable},
		{"label:a/b~c", "", "/labels/a~1b~0c", maskVariable},
		{"label:tenant", "", "/labels/host,/labels/*", maskVariable},
		{"input:/user/id", "/input/user", "", dropVariable},
		{"input:/user//id", "/input/user", "", dropVariable},
		{"input:/user/0", "", "/input/user/0", maskVariable},
		{"input:/user/id", "/input/user/name", "/input/id,/input/user/id/x,/labels/id,/requested_by", ""},
		{"decision_id", "/input", "/labels/*", ""},
		{"requested_by", "/input", "/labels/requested_by", ""},
	} {
		s := settings(t, []string{"127.0.0.1:1"}, "DOCKET_COLLECTOR_KEY="+c.key, "DOCKET_COLLECTOR_DROP="+c.drop, "DOCKET_COLLECTOR_MASK="+c.mask)
		err := Agree(s)
		said := config.Complaint{}
		if c.with == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if !errors.As(err, &said) || said.Variable != keyVariable || !strings.Contains(said.Text, c.with) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
