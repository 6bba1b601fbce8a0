package inspect

import (
	"strings"
	"testing"

	"docket/internal/audit/verify"
)

// A directory that is named with a slash behind it is the same directory.
func TestSpools_NamedWithASlash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ev := &verify.Evidence{}
	s := &System{spools: []string{dir, dir + "/", dir + "/none", dir + "/none/"}}
	for _, one := range s.spools[1:] {
		if err := spooled(one, ev); err != nil {
			t.Fatal(err)
		}
	}
	a := &audit{sys: s, ev: ev, result: &Result{Summary: &verify.Summary{}}}
	a.whole()
	if got := strings.Join(a.result.Elsewhere, "\n"); strings.Count(got, "is not there") != 2 || strings.Count(got, dir+"/none") != 2 {
		t.Errorf("the answer says:\n%s", got)
	}
}
