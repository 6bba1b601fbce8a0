// Package democmd is the command `docket demo`: its flags, its signals and the programs that it starts. Package demo
// has the demo itself.
//
// The build tag nodemo leaves the demo out, with the servers that it starts inside the process. A release is built with it.
package democmd

import "docket/internal/programs/cli"

// Command is the command that shows Docket at work.
func Command() cli.Command {
	return cli.Command{Name: "demo", Text: "Show Docket at work: no servers or setup needed.", Raw: true, Run: run}
}
