// Package sim holds the simulation: consumers and replayers as production wires them, in virtual time, among an
// in-process Kafka, a model of Postgres at the wire and disks in memory, under faults that a seed decides.
//
// It stays free of anything that production could import: everything but this comment is test code. One seed is one
// [schedule], which is data: what is produced, which processes there are, what goes wrong and in which order it heals. It
// is played in a bubble of testing/synctest, and in the end every decision must have the home that it deserves:
//
//	go test ./test/sim -tags synctests -run TestSimulation -sim.first 0 -sim.schedules 2000
//	go test ./test/sim -tags synctests -run TestSimulation -sim.seed 17
package sim
