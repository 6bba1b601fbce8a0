//go:build exact

package exact

import _ "unsafe" // for go:linkname

// Possible reports whether the binary was built for it.
const Possible = true

//go:linkname start runtime.exactStart
func start(seed uint64, log bool) bool

//go:linkname told runtime.exactTold
func told() (steps, digest, stray uint64)

// Start makes the calling goroutine's bubble follow from seed until it ends, and reports whether it does. It needs
// GOMAXPROCS=1 and GOGC=off, and one bubble at a time. With log every choice is printed to standard error.
func Start(seed uint64, log bool) bool { return start(seed, log) }

// Tell returns facts about the schedule so far.
func Tell() Told {
	steps, digest, stray := told()
	return Told{Steps: steps, Digest: digest, Stray: stray}
}
