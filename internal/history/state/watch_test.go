package state

import (
	"errors"
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
	for _, text := range []string{"alice", "subject=", "subject=a,,b", "subjects=a", "path"} {
		if _, err := ParseWatch(text); !errors.Is(err, ErrWatch) {
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
