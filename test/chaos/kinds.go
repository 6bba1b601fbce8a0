package chaos

import (
	"fmt"
	"slices"
	"time"
)

// The numbers of the programs and brokers of a campaign.
const (
	Consumers = 2
	Replayers = 2
	Brokers   = 3
	Desks     = 2 // where Postgres has no standby
)

const (
	members = Consumers + Replayers
	joiners = 2 // come and go
)

// Parts are what a campaign may have. Each has faults of its own.
type Parts struct {
	Disks   bool // of a limited size
	Standby bool // of Postgres; then there is no desk
	Lanes   bool // and limits that Redis counts
}

// Kinds are all faults of a campaign with these parts. Faults of Postgres hit the server that is the primary.
func Kinds(of Parts) []Kind {
	all := slices.Concat(processKinds(of.Standby), brokerKinds(), brokerWireKinds(), topicKinds(), serverKinds(), tableKinds(), postgresWireKinds())
	if of.Disks {
		all = append(all, diskKinds()...)
	}
	if of.Standby {
		all = append(all, standbyKinds()...)
	}
	if of.Lanes {
		all = append(all, laneKinds()...)
	}
	return all
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// each gives every target a hold of its own.
func each(names ...string) func(int) []string {
	return func(target int) []string {
		var holds []string
		for _, name := range names {
			holds = append(holds, fmt.Sprintf("%s %d", name, target))
		}
		return holds
	}
}

func all(names ...string) func(int) []string { return func(int) []string { return names } }

// every holds each of n targets.
func every(name string, n int) []string {
	var holds []string
	for i := range n {
		holds = append(holds, fmt.Sprintf("%s %d", name, i))
	}
	return holds
}

// ConsumerKilled kills a process; the first ones are consumers.
const ConsumerKilled = "process killed"

func processKinds(standby bool) []Kind {
	g := "process"
	kinds := []Kind{
		{ConsumerKilled, g, seconds(0.1), seconds(6), members, each("process")},
		{"process terminated", g, seconds(0.1), seconds(6), members, each("process")},
		{"process stopped beyond its session", g, seconds(8), seconds(16), members, each("process")},
		{"two processes killed at once", g, seconds(0.1), seconds(5), Consumers, func(target int) []string {
			return []string{fmt.Sprintf("process %d", target), fmt.Sprintf("process %d", Consumers+target)}
		}},
		{"both consumers terminated at once", g, seconds(0.1), seconds(3), 1, all("process 0", "process 1")},
		{"member added", g, seconds(3), seconds(15), joiners, each("joiner")},
		{"killed again and again", g, seconds(6), seconds(14), members, each("process")},
	}
	if standby {
		return kinds
	}
	return append(kinds,
		Kind{"desk killed", g, seconds(0.1), seconds(6), Desks, each("desk")},
		Kind{"desk stopped beyond its session", g, seconds(8), seconds(16), Desks, each("desk")},
		Kind{"desk killed again and again", g, seconds(6), seconds(14), Desks, each("desk")},
		Kind{"both desks killed at once", g, seconds(0.1), seconds(5), 1, func(int) []string { return every("desk", Desks) }},
	)
}

func brokerKinds() []Kind {
	g := "broker"
	return []Kind{
		{"broker killed", g, seconds(2), seconds(15), Brokers, all("brokers")},
		{"broker paused", g, seconds(4), seconds(14), Brokers, all("brokers")},
		{"two brokers killed", g, seconds(2), seconds(8), Brokers, all("brokers", "leaders")},
		{"all brokers paused", g, seconds(3), seconds(9), 1, all("brokers", "leaders")},
		{"leaders moved", g, seconds(0.5), seconds(4), Brokers, all("leaders")},
		{"leaders moved again and again", g, seconds(5), seconds(12), Brokers, all("leaders")},
	}
}

func brokerWireKinds() []Kind {
	g := "wire to a broker"
	one := each("broker wire")
	return []Kind{
		{"broker: black hole, both ways", g, seconds(3), seconds(14), Brokers, one},
		{"broker: black hole upstream", g, seconds(3), seconds(14), Brokers, one},
		{"broker: black hole downstream", g, seconds(3), seconds(14), Brokers, one},
		{"broker: latency", g, seconds(5), seconds(15), Brokers, one},
		{"broker: slow", g, seconds(5), seconds(12), Brokers, one},
		{"broker: connections reset", g, seconds(2), seconds(8), Brokers, one},
		{"broker: cut after some bytes", g, seconds(3), seconds(10), Brokers, one},
		{"all brokers: black hole", g, seconds(4), seconds(14), 1, func(int) []string { return every("broker wire", Brokers) }},
		{"all brokers: refused", g, seconds(3), seconds(12), 1, func(int) []string { return every("broker wire", Brokers) }},
	}
}

func topicKinds() []Kind {
	g := "topic"
	return []Kind{
		{"dead-letter topic takes nothing", g, seconds(12), seconds(20), Brokers, all("brokers", "leaders")},
		{"parking topic takes nothing", g, seconds(12), seconds(20), Brokers, all("brokers", "leaders")},
		{"database away, parking takes nothing", g, seconds(15), seconds(24), Brokers, all("brokers", "leaders", "postgres", "postgres wire")},
		{"no home at all", g, seconds(15), seconds(22), Brokers, func(int) []string {
			return append([]string{"brokers", "leaders", "postgres", "postgres wire"}, every("spool", members)...)
		}},
	}
}

func serverKinds() []Kind {
	g := "Postgres server"
	return []Kind{
		{"Postgres restarted, fast", g, seconds(0.2), seconds(4), 1, all("postgres")},
		{"Postgres restarted, immediate", g, seconds(0.2), seconds(4), 1, all("postgres")},
		{"Postgres killed", g, seconds(0.2), seconds(10), 1, all("postgres")},
		{"Postgres paused", g, seconds(2), seconds(14), 1, all("postgres")},
	}
}

func tableKinds() []Kind {
	g := "database"
	return []Kind{
		{"read-only", g, seconds(3), seconds(10), 1, all("read-only")},
		{"table renamed away", g, seconds(2), seconds(9), 1, all("table")},
		{"NOT NULL column added", g, seconds(2), seconds(9), 1, all("table")},
		{"table locked", g, seconds(3), seconds(14), 1, all("table")},
		{"sessions terminated", g, seconds(1), seconds(8), 1, all("sessions")},
		{"connections exhausted", g, seconds(3), seconds(10), 1, all("sessions")},
		{"grants taken away", g, seconds(2), seconds(8), 1, all("table")},
	}
}

func postgresWireKinds() []Kind {
	g := "wire to Postgres"
	one := all("postgres wire")
	return []Kind{
		{"cut before COMMIT", g, seconds(2), seconds(9), 1, all("cut")},
		{"cut after COMMIT", g, seconds(2), seconds(9), 1, all("cut")},
		{"cut around the insert", g, seconds(2), seconds(9), 1, all("cut")},
		{"Postgres: black hole, both ways", g, seconds(3), seconds(14), 1, one},
		{"Postgres: black hole upstream", g, seconds(3), seconds(14), 1, one},
		{"Postgres: black hole downstream", g, seconds(3), seconds(14), 1, one},
		{"Postgres: latency", g, seconds(4), seconds(12), 1, one},
		{"Postgres: slow", g, seconds(4), seconds(10), 1, one},
		{"Postgres: connections reset", g, seconds(2), seconds(8), 1, one},
		{"Postgres: cut after some bytes", g, seconds(3), seconds(9), 1, one},
		{"Postgres: refused", g, seconds(2), seconds(9), 1, one},
		{"Postgres: flapping", g, seconds(8), seconds(16), 1, one},
	}
}

// The kinds of a standby that a short campaign has.
const (
	LinkDark             = "link to the standby: black hole"
	WaitsCanceled        = "waits for the standby canceled"
	PromotedAfterCancels = "standby promoted after canceled waits"
)

func standbyKinds() []Kind {
	one := all("standby")
	// Promotion changes the server, on which others hold locks, sessions, settings and a disk: their changes have to be
	// undone on the server where they were made. The wires stay, as the address of the programs does.
	whole := all("standby", "postgres", "table", "sessions", "read-only", "disk")
	const answers = 2 // the promoted server waits for its standby at once, or is alone until there is one
	return []Kind{
		{LinkDark, "standby", seconds(4), seconds(14), 1, one},
		{"link to the standby: latency", "standby", seconds(4), seconds(12), 1, one},
		{"link to the standby: slow", "standby", seconds(4), seconds(10), 1, one},
		{"standby paused", "standby", seconds(3), seconds(12), 1, one},
		{"standby stopped", "standby", seconds(0.2), seconds(8), 1, one},
		{"standby killed", "standby", seconds(0.2), seconds(8), 1, one},
		{WaitsCanceled, "standby", seconds(4), seconds(12), 1, one},
		{"standby promoted, primary killed", "promotion", seconds(8), seconds(16), answers, whole},
		{"standby promoted, primary still up", "promotion", seconds(8), seconds(16), answers, whole},
		{"standby promoted, programs first", "promotion", seconds(8), seconds(16), answers, whole},
		{PromotedAfterCancels, "promotion", seconds(8), seconds(16), answers, whole},
	}
}

func diskKinds() []Kind {
	g := "disk"
	return []Kind{
		{"Postgres's disk full", g, seconds(3), seconds(12), 1, all("disk")},
		{"spool's disk full", g, seconds(4), seconds(14), members, each("spool")},
		{"spool's disk full, dead-letter topic takes nothing", g, seconds(13), seconds(20), Brokers, func(int) []string {
			return append([]string{"brokers", "leaders"}, every("spool", members)...)
		}},
	}
}
