package decision

import "testing"

// TestInside_IsComparesTexts: a name that is written with escapes is what it stands for, and nothing else.
func TestInside_IsComparesTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		written, name string
		is            bool
	}{
		{`"path"`, "path", true},
		{`"path"`, "paths", false},
		{`"paths"`, "path", false},
		{`"Path"`, "path", false},
		{`"p\u0061th"`, "path", true},
		{`"p\u0061th"`, "p\\u0061th", false},
		{`"a\b"`, "a\\b", false},
		{`"a\\b"`, "a\\b", true},
		{`"a\b"`, "a\b", true},
		{`""`, "", true},
		{`"\t"`, "", false},
	} {
		in := Into([]byte(`{`+c.written+`: 1}`), 0)
		if !in.Next() || in.Is(c.name) != c.is {
			t.Errorf("%s is %q: %v", c.written, c.name, !c.is)
		}
	}
}
