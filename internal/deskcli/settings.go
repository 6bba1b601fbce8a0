package deskcli

import (
	"github.com/spf13/cobra"

	"docket/internal/config"
)

type jsonSetting struct {
	Group    string   `json:"group"`
	Name     string   `json:"name"`
	Text     string   `json:"text"`
	Default  string   `json:"default"`
	Range    string   `json:"range,omitempty"`
	OneOf    []string `json:"one_of,omitempty"`
	Required bool     `json:"required"`
	Secret   bool     `json:"secret"` // it can come from the file that NAME_FILE names
}

// settingsTopic explains the settings.
func (s *session) settingsTopic() *cobra.Command {
	return &cobra.Command{
		Use: "settings", Short: "List all settings (environment variables)",
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.asJSON {
				s.print(listOf(settingsOf(), "", func(j jsonSetting) jsonSetting { return j }))
				return nil
			}
			say(c.OutOrStdout(), "Settings (environment variables). Durations: 500ms, 10s, 1h30m. Sizes: 512MiB. Booleans: true, false. Lists: by comma.\n\n%s",
				config.Help(config.Desk, 100))
			return nil
		},
	}
}

func settingsOf() []jsonSetting {
	var all []jsonSetting
	for _, one := range config.Table() {
		if one.Of(config.Desk) {
			all = append(all, jsonSetting{
				Group: one.Group, Name: one.Name, Text: one.Text, Default: one.Default(config.Desk), Range: one.Range(), OneOf: one.OneOf, Required: one.Required, Secret: one.Secret,
			})
		}
	}
	return all
}
