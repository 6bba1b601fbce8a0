// Package home decides which offsets may be committed: it tracks which decision of which Kafka record has a home.
//
// An [Account] covers one assignment of one partition. Records enter it in offset order. A [Batch] says how many
// decisions each record has. Every decision is an [Entry] that gets exactly one [Home]. Only [Batch.Settle] and
// [Account.Reached] make a [Settled], and a commit takes nothing else. So no code can commit past a record without a
// home.
//
// The package does not know why a record gets its home. It imports no client, no SQL and no files.
package home

import "fmt"

// Home is a durable destination, from which a decision can be read after any crash. The zero value is None, so that a
// forgotten home prevents the commit.
type Home uint8

const (
	// None is the lack of a home: the record must not be committed.
	None Home = iota
	// Row is a row of decision_logs that was stored now.
	Row
	// Duplicate is a row that was stored before, with an equal payload.
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

// String returns the home's name as in the metric label `home`.
func (h Home) String() string {
	if h >= homes {
		return fmt.Sprintf("home(%d)", uint8(h))
	}
	return names[h]
}

// All returns the homes, without None.
func All() []Home { return []Home{Row, Duplicate, Parked, DeadLetter, Exhausted, Spooled} }
