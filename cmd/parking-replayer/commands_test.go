package main

import (
	"docket/internal/programs/cli"
	"docket/internal/programs/replay"
)

func commands() []cli.Command { return replay.Commands() }
