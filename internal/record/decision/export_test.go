package decision

// Typical is a typical decision log.
const Typical = typical

// Benchmarked makes decisions like the benchmark of the whole worker.
var Benchmarked func() [][]byte
