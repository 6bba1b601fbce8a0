// Package sim has the simulation. It runs consumers and replayers, wired as in production, in virtual time. Kafka
// runs in the process, Postgres is a model of its protocol, and disks are in memory. A seed decides the faults.
//
// It has no code for production: everything except this comment is test code. One seed is one [schedule], which is
// data: the records, the processes, the faults and the order in which they end. It is played in a bubble of
// testing/synctest. At the end every decision must have its expected home:
//
//	go test ./test/sim -tags synctests -run TestSimulation -sim.first 0 -sim.schedules 2000
//	go test ./test/sim -tags synctests -run TestSimulation -sim.seed 17
package sim
