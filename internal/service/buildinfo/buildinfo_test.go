package buildinfo

import (
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBuild(t *testing.T) {
	t.Parallel()
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: version}, Settings: settings}
	}
	const hash = "0123456789abcdef0123"
	commit := debug.BuildSetting{Key: "vcs.revision", Value: hash}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	for name, c := range map[string]struct {
		version, revision string // linked
		info              *debug.BuildInfo
		want              Build
	}{
		"linked":          {"v1.2.3", "fedc", built("v9.9.9", commit), Build{"v1.2.3", "fedc", "go1.26.1"}},
		"version linked":  {"v1.2.3", "", built("v9.9.9", commit), Build{"v1.2.3", hash, "go1.26.1"}},
		"revision linked": {"", "fedc", built("", commit, modified), Build{"devel-fedc", "fedc", "go1.26.1"}},
		"module":          {"", "", built("v1.0.0", commit), Build{"v1.0.0", hash, "go1.26.1"}},
		"commit":          {"", "", built("(devel)", commit), Build{"devel-0123456789ab", hash, "go1.26.1"}},
		"changed commit":  {"", "", built("", commit, modified), Build{"devel-0123456789ab+changes", hash + "+changes", "go1.26.1"}},
		"clean commit":    {"", "", built("", commit, clean), Build{"devel-0123456789ab", hash, "go1.26.1"}},
		"nothing":         {"", "", built(""), Build{"devel", "unknown", "go1.26.1"}},
		"no information":  {"", "", nil, Build{"unknown", "unknown", runtime.Version()}},
	} {
		if got := build(c.version, c.revision, c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if line, b := Line("consumer"), Current(); line != "consumer "+b.Version+" (revision "+b.short()+", "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")" {
		t.Errorf("Line = %q", line)
	}
	if String() != Current().Version {
		t.Errorf("String = %q", String())
	}
}
