// Package buildinfo says which build this is. It stays free of everything else.
package buildinfo

import (
	"runtime"
	"runtime/debug"
)

// Version is set by the linker: -ldflags "-X docket/internal/buildinfo.Version=v1.2.3".
var Version = ""

// String is the version: what the linker set, else what the module system knows, else the commit that was built.
func String() string {
	info, _ := debug.ReadBuildInfo()
	return version(Version, info)
}

func version(linked string, info *debug.BuildInfo) string {
	if linked != "" {
		return linked
	}
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var commit, dirty string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	if commit == "" {
		return "devel"
	}
	return "devel-" + commit[:min(12, len(commit))] + dirty
}

// Line is what `version` prints.
func Line(program string) string {
	return program + " " + String() + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
