// Package exact makes the test binary's Go runtime choose by a seed, where the binary was built for it.
//
// It stays free of what is simulated. A binary built with the tag exact and the overlay of tools/detruntime runs every
// goroutine of a bubble of testing/synctest in an order that follows from the seed alone; any other binary runs as ever,
// and [Start] says so.
package exact

// Told is what the runtime saw of a schedule.
type Told struct {
	// Steps counts how often a goroutine was chosen to run.
	Steps uint64
	// Digest follows from every choice and its virtual time: equal digests are equal interleavings.
	Digest uint64
	// Stray counts iterations over maps whose order follows from addresses. They may differ from process to process.
	Stray uint64
}
