package tree

import (
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/service/config"
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
func settingsTopic(call frame.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "settings", Short: "List all settings (environment variables)",
		Long: "List all settings of docket: environment variables with their defaults, ranges and meanings.\n\n" +
			"It prints the defaults, not the values that are set. docs/settings.md has the settings of all programs.",
		Example: "  docket settings\n  docket settings --json | jq -r '.entries[].name'",
		Args:    frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if call.AsJSON {
				call.Print(frame.ListOf(settingsOf(), "", func(j jsonSetting) jsonSetting { return j }))
				return nil
			}
			_, _ = fmt.Fprintf(c.OutOrStdout(), "Settings of docket (environment variables). `docket check`, `docket verify` and `docket where-is` also read those\n"+
				"of the consumer: `docket consume --help` lists them.\n\n%s\n\n%s", cli.Folded(cli.SettingsText, ""), config.Help(config.Desk, 100))
			return nil
		},
	}
	frame.Usage(c, nil, "", "")
	return c
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
