// Package buildinfo says which build this is. It stays free of everything else.
package buildinfo

import (
	"runtime"
	"runtime/debug"
)

// The linker sets these: -ldflags "-X docket/internal/service/buildinfo.Version=v1.2.3 -X docket/internal/service/buildinfo.Revision=COMMIT".
var (
	Version  = ""
	Revision = ""
)

// unknown stands for a value that a build does not have.
const unknown = "unknown"

// shortHash is how many letters of a commit people read.
const shortHash = 12

// Build is one build of the programs. No field is empty.
type Build struct {
	Version  string // as the linker set it, else the module's, else made from the revision
	Revision string // the whole hash of the commit; with "+changes" if the tree had some
	Go       string
}

// Current is the build of this process.
func Current() Build {
	info, _ := debug.ReadBuildInfo()
	return build(Version, Revision, info)
}

// String is the version of this process.
func String() string { return Current().Version }

func build(version, revision string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Revision: revision, Go: runtime.Version()}
	if info == nil {
		b.Version, b.Revision = either(version, unknown), either(revision, unknown)
		return b
	}
	b.Go = info.GoVersion
	changes := ""
	if revision == "" {
		var modified string
		b.Revision, modified = setting(info, "vcs.revision"), setting(info, "vcs.modified")
		if b.Revision != "" && modified == "true" {
			changes = "+changes"
		}
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	switch {
	case b.Version != "":
	case b.Revision == "":
		b.Version = "devel"
	default:
		b.Version = "devel-" + b.short() + changes
	}
	b.Revision = either(b.Revision, unknown) + changes
	return b
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func either(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// short is the revision as people read it.
func (b Build) short() string { return b.Revision[:min(shortHash, len(b.Revision))] }

// Line is what `version` prints.
func Line(program string) string {
	b := Current()
	return program + " " + b.Version + " (revision " + b.short() + ", " + b.Go + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
