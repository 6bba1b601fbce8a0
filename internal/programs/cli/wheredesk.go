package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// whereOfDesk prints the answer of a desk, which is that of the command there.
func whereOfDesk(env Env, query string, asJSON bool) int {
	ctx, end := UntilSignal(env)
	defer end()
	text, report, settled, err := env.AskDesk(ctx, query)
	switch {
	case err != nil:
		return unlooked(env, err)
	case asJSON:
		printJSON(env.Stdout, json.RawMessage(report))
	default:
		say(env.Stdout, "%s", term.Lines(text))
	}
	if settled {
		return Done
	}
	return Failed
}

// Where is the answer of the command where-is: for people, for programs, and whether each decision has a home or is not read
// yet.
func Where(s config.Settings, found *inspect.Whereabouts) (text string, report []byte, settled bool) {
	var people, programs bytes.Buffer
	settled = showWhere(&people, s, found) == Done
	printJSON(&programs, whereOf(s, found))
	return people.String(), programs.Bytes(), settled
}

// short is a duration without what does not matter.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
