// Package exact makes the test binary's Go runtime choose by a seed, if the binary was built for it.
//
// It knows nothing about the simulation. Such a binary has the tag exact and the overlay of tools/detruntime. In it
// the goroutines of a bubble of testing/synctest run in an order that follows from the seed alone. In any other
// binary [Start] returns false.
package exact

// Told are facts about a schedule.
type Told struct {
	// Steps counts how often a goroutine was chosen to run.
	Steps uint64
	// Digest depends on every choice and its virtual time: equal digests mean equal interleavings.
	Digest uint64
	// Stray counts iterations over maps whose order depends on addresses. They may differ between processes.
	Stray uint64
}
