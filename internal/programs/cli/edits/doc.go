// Package edits has the commands that change the payload of a dead letter: edit, and the proposals that a second person approves or
// rejects.
package edits
