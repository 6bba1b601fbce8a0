package state

import (
	"errors"
	"slices"
	"strings"
)

// Watch names the subjects and paths whose flips people are told of. The zero value names none.
type Watch struct {
	Subjects []string
	Paths    []string // whole, or all below one if it ends in "/*"
}

// ErrWatch says that a text is no [Watch].
var ErrWatch = errors.New("want subject=NAME,NAME;path=PATH,PATH/*")

// ParseWatch reads a watch as in settings, like subject=alice,bob;path=admin/*. An empty text names nothing.
func ParseWatch(text string) (w Watch, err error) {
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, list, ok := strings.Cut(part, "=")
		if !ok || name != "subject" && name != "path" {
			return Watch{}, ErrWatch
		}
		for one := range strings.SplitSeq(list, ",") {
			one = strings.TrimSpace(one)
			if one == "" || len(one) > MostKey {
				return Watch{}, ErrWatch
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
