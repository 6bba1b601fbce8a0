package main

import (
	"docket/internal/programs/cli"
	"docket/internal/programs/consume"
)

func commands() []cli.Command { return consume.Commands() }
