package state

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWatch_Forms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Watch{
		"": {}, "subject=alice, bob ; path=admin/*,/a/b": {Subjects: []string{"alice", "bob"}, Paths: []string{"admin/*", "a/b"}}, "path=*": {Paths: []string{"*"}},
	} {
		got, err := ParseWatch(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
	for text, entry := range map[string]string{
		"alice": `entry "alice" begins`, "subject=": `entry "subject=" has an empty name`, "path=a;subject=a,,b": `entry "subject=a,,b" has an empty name`,
		"path=x;subjects=a": `entry "subjects=a" begins`, "path": `entry "path" begins`, "path=" + strings.Repeat("x", MostKey+1): "has a name of more than",
	} {
		if _, err := ParseWatch(text); !errors.Is(err, ErrWatch) || !strings.Contains(err.Error(), entry) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWatch_SubjectsAndPaths(t *testing.T) {
	t.Parallel()
	w := Watch{Subjects: []string{"alice"}, Paths: []string{"admin/*", "a/b"}}
	for path, want := range map[string]bool{"admin/x": true, "admin": false, "administrator/x": false, "a/b": true, "/a/b": true, "a/b/c": false} {
		if got := w.Path(Key{"bob", path}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !w.Subject(Key{"alice", "x"}) || w.Subject(Key{"bob", "x"}) {
		t.Error("subjects")
	}
	if !(Watch{Paths: []string{"*"}}).Path(Key{"bob", "any"}) {
		t.Error("all paths")
	}
}
