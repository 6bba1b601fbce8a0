package desk

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Without the setting the desk has no worker for states and none of their metrics.
func TestStates_OnlyWhereTheyAreSet(t *testing.T) {
	t.Parallel()
	workers := map[string]int{}
	for _, setting := range []string{"DOCKET_STATES=false", "DOCKET_STATES=true"} {
		reg := prometheus.NewRegistry()
		p, err := New(settings(t, nowhere(setting)), zerolog.Nop(), reg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		workers[setting] = len(p.workers)
		families, err := reg.Gather()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for _, f := range families {
			has = has || strings.HasPrefix(f.GetName(), "docket_state_")
		}
		if has != (setting == "DOCKET_STATES=true") {
			t.Errorf("%s: metrics of states: %v", setting, has)
		}
	}
	if workers["DOCKET_STATES=true"] != workers["DOCKET_STATES=false"]+1 {
		t.Errorf("workers: %v", workers)
	}
}

func TestStates_WatchIsChecked(t *testing.T) {
	t.Parallel()
	judge := Judges()["DOCKET_STATES_WATCH"]
	if said := judge("alice"); said == "" {
		t.Error("it takes a subject without its kind")
	}
	if said := judge("subject=alice;path=admin/*"); said != "" {
		t.Error(said)
	}
}
