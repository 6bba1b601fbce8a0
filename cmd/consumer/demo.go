package main

import (
	"fmt"
	"io"

	"docket/internal/cli"
)

// runDemo runs the demo and returns the exit code.
func runDemo(_ []string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "consumer: this build has no demo")
	return cli.Failed
}
