//go:build synctests

package kafka

// poison makes builds for tests fill released memory with bytes that cannot be mistaken for a record.
const poison = true
