package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Watch names the subjects and paths whose flips people are told of. The zero value names none.
type Watch struct {
	Subjects []string
	Paths    []string // whole, or all below one if it ends in "/*"
}

// ErrWatch says that a text is not a [Watch].
var ErrWatch = errors.New("write it like subject=alice,bob;path=admin/*")

// ParseWatch reads a watch as in settings, like subject=alice,bob;path=admin/*. An empty text names nothing. An error
// is an [ErrWatch] that names the entry.
func ParseWatch(text string) (w Watch, err error) {
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, list, ok := strings.Cut(part, "=")
		if !ok || name != "subject" && name != "path" {
			return Watch{}, wrongWatch(part, "begins with neither subject= nor path=")
		}
		for one := range strings.SplitSeq(list, ",") {
			one = strings.TrimSpace(one)
			switch {
			case one == "":
				return Watch{}, wrongWatch(part, "has an empty name")
			case len(one) > MostKey:
				return Watch{}, wrongWatch(part, fmt.Sprintf("has a name of more than %d bytes", MostKey))
			}
			if name == "subject" {
				w.Subjects = append(w.Subjects, one)
			} else {
				w.Paths = append(w.Paths, strings.Trim(one, "/"))
			}
		}
	}
	return w, nil
}

func wrongWatch(entry, wrong string) error {
	const most = 40
	if len(entry) > most {
		entry = entry[:most] + "..."
	}
	return fmt.Errorf("entry %s %s; %w", strconv.QuoteToASCII(entry), wrong, ErrWatch)
}

// Subject says whether the subject of a key is watched.
func (w Watch) Subject(k Key) bool { return slices.Contains(w.Subjects, k.Subject) }

// Path says whether the path of a key is watched.
func (w Watch) Path(k Key) bool {
	path := strings.Trim(k.Path, "/")
	return slices.ContainsFunc(w.Paths, func(of string) bool {
		if above, below := strings.CutSuffix(of, "/*"); below {
			return strings.HasPrefix(path, above+"/")
		}
		return of == path || of == "*"
	})
}
