package nightly

import (
	"errors"
	"strconv"
	"strings"
)

// Bounds of an age, in days.
const (
	LeastAge = 1
	MostAge  = 36500
)

var errAge = errors.New("is not a number of days; write it like 90d, from 1d to 36500d")

// ParseAge reads an age in days, like 90d, from 1d to 36500d.
func ParseAge(text string) (days int, err error) {
	number, ok := strings.CutSuffix(text, "d")
	days, err = strconv.Atoi(number)
	if !ok || err != nil || days < LeastAge || days > MostAge {
		return 0, errAge
	}
	return days, nil
}
