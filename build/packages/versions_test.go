package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/sassoftware/go-rpmutils"
)

// inOrder are versions as git describe says them, from the oldest to the newest.
var inOrder = []string{
	"v1.2.2", "v1.2.2-5-gabc1234", "v1.2.3-alpha.1", "v1.2.3-alpha.1-4-gabc1234", "v1.2.3-alpha.1-12-g0bc1234", "v1.2.3-alpha.2", "v1.2.3-beta", "v1.2.3-rc.1", "v1.2.3-rc.2", "v1.2.3-rc.10",
	"v1.2.3", "v1.2.3-1-gfff1234", "v1.2.3-2-gabc1234", "v1.2.3-10-gabc1234", "v1.2.4-rc.1", "v1.2.4", "v1.10.0", "v2.0.0",
}

// versionsOf are the versions that a function of build/versions.sh makes.
func versionsOf(t *testing.T, function string, versions ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", append([]string{"-euc", `. ../versions.sh; f=$1; shift; for v; do "$f" "$v"; done`, "bash", function}, versions...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

func TestVersions_SortAsReleased(t *testing.T) {
	t.Parallel()
	packages, charts := versionsOf(t, "package_version", inOrder...), versionsOf(t, "chart_version", inOrder...)
	if len(packages) != len(inOrder) || len(charts) != len(inOrder) {
		t.Fatal(packages, charts)
	}
	for i := 1; i < len(inOrder); i++ {
		if debOrder(packages[i-1], packages[i]) >= 0 {
			t.Errorf("dpkg: %s is not before %s", packages[i-1], packages[i])
		}
		if rpmutils.Vercmp(packages[i-1], packages[i]) >= 0 {
			t.Errorf("rpm: %s is not before %s", packages[i-1], packages[i])
		}
		before, err := semver.StrictNewVersion(charts[i-1])
		if err != nil {
			t.Fatal(charts[i-1], err)
		}
		if after, err := semver.StrictNewVersion(charts[i]); err != nil || !before.LessThan(after) {
			t.Errorf("helm: %s is not before %s, %v", charts[i-1], charts[i], err)
		}
	}
}

// A commit without a tag is before every release.
func TestVersions_WithoutTag(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"24be2562", "dev", "weird version!", "v1.2"} {
		p, c := versionsOf(t, "package_version", version), versionsOf(t, "chart_version", version)
		if len(p) != 1 || len(c) != 1 || !strings.HasPrefix(p[0], "0.0.0~g") || debOrder(p[0], "0.0.0") >= 0 {
			t.Errorf("%q: %q %q", version, p, c)
		}
		if _, err := semver.StrictNewVersion(c[0]); err != nil {
			t.Errorf("%q: %q %v", version, c, err)
		}
	}
}

// debOrder compares versions without a revision, by the rules of deb-version(7).
func debOrder(a, b string) int {
	for a != "" || b != "" {
		one, two := runOf(a, false), runOf(b, false)
		a, b = a[len(one):], b[len(two):]
		for i := range max(len(one), len(two)) + 1 {
			if d := weight(one, i) - weight(two, i); d != 0 {
				return d
			}
		}
		one, two = runOf(a, true), runOf(b, true)
		a, b = a[len(one):], b[len(two):]
		one, two = strings.TrimLeft(one, "0"), strings.TrimLeft(two, "0")
		if d := len(one) - len(two); d != 0 {
			return d
		}
		if d := strings.Compare(one, two); d != 0 {
			return d
		}
	}
	return 0
}

// runOf is the first run of digits, or of other characters.
func runOf(s string, digits bool) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsDigit(r) != digits }); i >= 0 {
		return s[:i]
	}
	return s
}

// weight is that of a character in a run: ~ is before the end, letters are before others.
func weight(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case unicode.IsLetter(rune(s[i])):
		return int(s[i])
	}
	return int(s[i]) + 256
}

func TestDebOrder_Rules(t *testing.T) {
	t.Parallel()
	ordered := []string{"1.0~~", "1.0~~a", "1.0~", "1.0~a", "1.0", "1.0a", "1.0+", "1.1", "1.9", "1.10"}
	if !slices.IsSortedFunc(ordered, debOrder) || debOrder("1.01", "1.1") != 0 {
		t.Error("the rules of dpkg are not kept")
	}
}
