package config

// Nearest is the candidate that word was most likely meant to be, empty where none is near.
func Nearest(word string, candidates []string) string {
	best, near := max(2, len(word)/4)+1, ""
	for _, c := range candidates {
		if d := distance(word, c); d < best {
			best, near = d, c
		}
	}
	return near
}

// distance is how many letters have to be put in, taken out, changed or swapped with their neighbour.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
