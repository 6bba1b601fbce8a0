package decision

// Typical is a decision log as most are.
const Typical = typical

// Benchmarked are decisions as the benchmark of the whole worker makes them.
var Benchmarked func() [][]byte
