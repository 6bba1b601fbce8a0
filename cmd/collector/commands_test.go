package main

import (
	"docket/internal/programs/cli"
	"docket/internal/programs/collect"
)

func commands() []cli.Command { return collect.Commands() }
