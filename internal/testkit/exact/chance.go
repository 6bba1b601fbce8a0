//go:build !exact

package exact

// Possible reports whether the binary was built for it.
const Possible = false

// Start would make the calling goroutine's bubble follow from seed. This binary was not built for it, so it returns
// false.
func Start(uint64, bool) bool { return false }

// Tell returns nothing, because nothing is known of the schedule.
func Tell() Told { return Told{} }
