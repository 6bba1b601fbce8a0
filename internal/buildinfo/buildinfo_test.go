package buildinfo

import (
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVersionIsTheBestThatIsKnown(t *testing.T) {
	t.Parallel()
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for name, c := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"linked":         {"v1.2.3", built("v9.9.9", commit), "v1.2.3"},
		"module":         {"", built("v1.0.0", commit), "v1.0.0"},
		"commit":         {"", built("(devel)", commit), "devel-0123456789ab"},
		"changed commit": {"", built("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "devel-0123456789ab+changes"},
		"clean commit":   {"", built("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "devel-0123456789ab"},
		"nothing":        {"", built(""), "devel"},
		"no information": {"", nil, "unknown"},
	} {
		if got := version(c.linked, c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if line := Line("consumer"); !strings.HasPrefix(line, "consumer ") || !strings.Contains(line, "go1.") {
		t.Errorf("Line = %q", line)
	}
}
