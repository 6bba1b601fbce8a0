package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Secret is a value that is never printed: whatever formats it gets stars.
type Secret string

const stars = "***"

// Reveal is the secret itself, for the one who has to use it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return stars }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return stars }

// Format hides the secret from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(stars)) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(stars), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(stars) }

// Size is a number of bytes.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// String is the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 && strings.HasSuffix(u.name, "iB") {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

var (
	errSize     = errors.New("is not a size; write a whole number and a unit, like 512MiB")
	errDuration = errors.New("is not a duration; write it like 500ms, 10s or 1h30m")
	errWhole    = errors.New("is not a whole number")
	errBool     = errors.New("is neither true nor false")
)

// ParseSize reads a size like 512MiB: a whole number with B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB
// (powers of 1000).
func ParseSize(text string) (Size, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			return 0, errSize
		}
		return Size(int64(n) * u.bytes), nil
	}
	return 0, errSize
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

func parseWhole(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errWhole
	}
	return n, nil
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errBool
}

// list splits by comma; blanks around an item are nobody's wish.
func list(text string) []string {
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

func parseDurations(text string) ([]time.Duration, error) {
	var all []time.Duration
	for _, item := range list(text) {
		d, err := parseDuration(item)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}
