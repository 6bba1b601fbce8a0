package letters

import (
	"encoding/json"
	"testing"
)

func TestFate_JSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Fate{ID: "a0", Result: "stored", State: "RESOLVED", Detail: "d", Ended: true})
	if want := `{"id":"a0","result":"stored","state":"RESOLVED","detail":"d"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
