package letters

import (
	"encoding/json"
	"strings"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
)

// A retry that no setting allows names the setting of lanes, because a lane may have been removed.
func TestBecause_ForeignTopicNamesLanes(t *testing.T) {
	t.Parallel()
	foreign := because([]ledger.Sending{{Code: "unreachable"}, {Code: worker.CodeForeignTopic, Topic: "logs-urgent"}})
	for _, part := range []string{": foreign_topic, as no retry may go to logs-urgent", "DOCKET_LANES", "DOCKET_DESK_RETRY_TOPICS"} {
		if !strings.Contains(foreign, part) {
			t.Errorf("%q is not in %q", part, foreign)
		}
	}
	if other := because([]ledger.Sending{{Code: "unreachable"}}); other != ": unreachable" || because(nil) != "" {
		t.Errorf("%q", other)
	}
}

func TestFate_JSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Fate{ID: "a0", Result: "stored", State: "RESOLVED", Detail: "d", Ended: true})
	if want := `{"id":"a0","result":"stored","state":"RESOLVED","detail":"d"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
