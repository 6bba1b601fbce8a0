package nightly

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Classes are the storage classes of object storage by the age of a day. The zero value names none.
type Classes []Class

// Class is the storage class of days that are so old, in days, or older.
type Class struct {
	From int
	Name string
}

var (
	className = regexp.MustCompile(`^[A-Z][A-Z0-9_-]{1,39}$`)
	// slowClasses have to be asked for an object hours before it can be read.
	slowClasses = []string{"GLACIER", "DEEP_ARCHIVE"}
)

var errClasses = errors.New("is not a list of storage classes; write it like 0:STANDARD,90:GLACIER_IR, with the age in days before each class")

// ParseClasses reads classes like 0:STANDARD,90:GLACIER_IR, in any order. An empty text names none. It refuses a class
// that cannot be read at once, as questions to archived days are answered from their files.
func ParseClasses(text string) (Classes, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var all Classes
	for entry := range strings.SplitSeq(text, ",") {
		number, name, _ := strings.Cut(strings.TrimSpace(entry), ":")
		from, err := strconv.Atoi(number)
		switch {
		case err != nil || from < 0 || from > MostAge || !className.MatchString(name):
			return nil, errClasses
		case slices.Contains(slowClasses, name):
			return nil, fmt.Errorf("names %s, which cannot be read at once; questions to archived days need their files, so choose GLACIER_IR or another class that answers at once", name)
		case slices.ContainsFunc(all, func(c Class) bool { return c.From == from }):
			return nil, fmt.Errorf("names two classes from %d days on", from)
		}
		all = append(all, Class{from, name})
	}
	slices.SortFunc(all, func(a, b Class) int { return cmp.Compare(a.From, b.From) })
	return all, nil
}

// At returns the class of a day that is so old, in days; empty: the storage's own.
func (cs Classes) At(age int) (name string) {
	for _, c := range cs {
		if c.From <= age {
			name = c.Name
		}
	}
	return name
}
