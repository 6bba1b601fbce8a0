// Package home keeps the books that decide what may be committed: which decision of which Kafka record has a home.
//
// An [Account] covers one assignment of one partition. Records enter it in offset order, a [Batch] says how many
// decisions each record carried, every decision is an [Entry] that is given exactly one [Home]. [Batch.Settle] and
// [Account.Reached] are the only makers of a [Settled], the only thing a commit takes. Nobody can commit past a record
// without a home because nobody else can write the offset down.
//
// The package stays free of why a record is where it is, of clients, of SQL and of files.
package home

import "fmt"

// Home is a place from which a decision can be had again after any crash. The zero value is None, so that silence
// holds a commit back.
type Home uint8

const (
	// None is no home: the record must not be committed.
	None Home = iota
	// Row is a row of decision_logs that was stored now.
	Row
	// Duplicate is a row that was there before, with an equal payload.
	Duplicate
	// Parked is an acknowledged record of the parking topic.
	Parked
	// DeadLetter is an acknowledged record of the dead-letter topic.
	DeadLetter
	// Exhausted is an acknowledged record of the parking dead-letter topic.
	Exhausted
	// Spooled is a line of a synced file in the spool.
	Spooled

	homes
)

var names = [homes]string{"none", "row", "duplicate", "parked", "dead_letter", "exhausted", "spooled"}

// String is the home's name as the metric label `home` has it.
func (h Home) String() string {
	if h >= homes {
		return fmt.Sprintf("home(%d)", uint8(h))
	}
	return names[h]
}

// All lists the homes, without None.
func All() []Home { return []Home{Row, Duplicate, Parked, DeadLetter, Exhausted, Spooled} }
