package desk

import (
	"slices"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/service/config"
)

// TestSight_SettingsHoldNoSecret: a secret is set or unset, and so is the file that holds it.
func TestSight_SettingsHoldNoSecret(t *testing.T) {
	t.Parallel()
	lines := settingLines([]string{"DOCKET_DATABASE_URL=postgres://u:planted@h/x", "DOCKET_DESK_API_TOKENS_FILE=/run/planted", "DOCKET_KAFKA_BROKERS=k:9092", "DOCKET_DESK_PEERS=http://c:8080", "OTHER=planted"})
	sources := map[string]string{}
	for _, l := range lines {
		if sources[l.Name] = l.Source; l.Secret && l.Value != "" || l.Value == "planted" {
			t.Errorf("%+v", l)
		}
	}
	if len(lines) < 50 || sources["DOCKET_DATABASE_URL"] != "environment" || sources["DOCKET_DESK_API_TOKENS"] != "environment" || sources["DOCKET_DESK_API_ADDR"] != "default" || sources["DOCKET_DESK_ALERT_URLS"] != "unset" {
		t.Errorf("%d settings: %v", len(lines), sources)
	}
	if settingLines(nil) != nil {
		t.Error("settings of no environment")
	}
}

func TestSight_TargetsAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	if all := targets(config.Settings{}); len(all) != 0 {
		t.Errorf("%v", all)
	}
	if all := targets(config.Settings{DeskPeers: []string{"http://c:8080", "dns:c:8080"}}); len(all) != 2 || all[1].Host != "c" {
		t.Errorf("%+v", all)
	}
}

// TestSight_CheckListsTheArchives: the check of a desk looks at the place that its own settings name.
func TestSight_CheckListsTheArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := config.Load(config.Desk, []string{"DOCKET_DATABASE_URL=postgres://u@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_ARCHIVE_TO=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	if all := findings(t.Context(), s); !slices.Contains(all, api.Finding{Level: "ok", What: "archives", Detail: "0 archives in " + dir}) {
		t.Errorf("%+v", all)
	}
}
