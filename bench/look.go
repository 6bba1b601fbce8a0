package bench

import "time"

const (
	seldom = 500 * time.Millisecond
	often  = 5 * time.Millisecond
)

// NextLook is how long to leave a worker alone that has done n of want so far, as each look takes time of the measurement.
// It is half of the time that the rest takes at this rate. So the end is seen as exactly as with frequent looks.
func NextLook(n, want int64, elapsed time.Duration) time.Duration {
	if n <= 0 || elapsed <= 0 {
		return 10 * often
	}
	left := time.Duration(float64(elapsed) / float64(n) * float64(want-n))
	return min(max(left/2, often), seldom)
}
