package layout

import (
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	root   = "../.."
	module = "docket/"
)

// rule is one rule of depguard.
type rule struct {
	Files []string `yaml:"files"`
	Allow []string `yaml:"allow"`
	Deny  []struct {
		Pkg string `yaml:"pkg"`
	} `yaml:"deny"`
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Linters.Settings.Depguard.Rules
}

// folders returns the folders under internal/ that have production code, each with the folders that it imports, under any build tag.
func folders(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		context := build.Default
		context.UseAllFiles = true
		pkg, err := context.ImportDir(path, 0)
		if len(pkg.GoFiles)+len(pkg.IgnoredGoFiles) == 0 {
			return nil // no folder of code, or of tests alone
		}
		if err != nil {
			t.Logf("%s: %v", path, err)
		}
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		imports := []string{}
		for _, p := range pkg.Imports {
			if within, ok := strings.CutPrefix(p, module); ok {
				imports = append(imports, within)
			}
		}
		found[filepath.ToSlash(folder)] = imports
		return nil
	})
	if err != nil || len(found) < 40 {
		t.Fatalf("%d folders: %v", len(found), err)
	}
	return found
}

func TestMap_EachFolderHasItsRule(t *testing.T) {
	t.Parallel()
	all, code := rules(t), folders(t)
	for _, folder := range slices.Sorted(maps.Keys(code)) {
		r, ok := all[folder]
		if !ok {
			t.Errorf("%s has no rule in .golangci.yml: add one that names the folders it may import", folder)
			continue
		}
		if !slices.Contains(r.Files, "**/"+folder+"/*.go") || len(r.Deny) == 0 || r.Deny[0].Pkg != "docket" {
			t.Errorf("the rule of %s does not deny the other folders to its files: %+v", folder, r)
		}
		for _, to := range code[folder] {
			if !slices.Contains(r.Allow, module+to+"$") && !strings.HasPrefix(to, "internal/service/failpoint") {
				t.Errorf("%s imports %s, which its rule does not allow", folder, to)
			}
		}
		for _, allowed := range r.Allow {
			if to := strings.TrimSuffix(strings.TrimPrefix(allowed, module), "$"); !slices.Contains(code[folder], to) {
				t.Errorf("the rule of %s allows %s, which it does not import", folder, to)
			}
		}
	}
}

func TestMap_EachRuleHasItsFolder(t *testing.T) {
	t.Parallel()
	code := folders(t)
	for name, r := range rules(t) {
		if _, ok := code[name]; !ok && strings.HasPrefix(name, "internal/") {
			t.Errorf("there is a rule for %s and no such folder", name)
		}
		for _, pattern := range r.Files {
			path := strings.TrimPrefix(strings.TrimPrefix(pattern, "!"), "**/")
			if strings.HasPrefix(path, "$") || strings.HasPrefix(path, "*") {
				continue // all files, or all tests
			}
			for _, each := range braced(path) {
				dir := strings.TrimSuffix(strings.TrimSuffix(each, "/*.go"), "/**")
				if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
					t.Errorf("rule %s names %s, which is gone", name, dir)
				}
			}
		}
	}
}

// braced returns the alternatives of a pattern with at most one pair of braces.
func braced(pattern string) []string {
	before, rest, found := strings.Cut(pattern, "{")
	if !found {
		return []string{pattern}
	}
	among, after, _ := strings.Cut(rest, "}")
	var all []string
	for one := range strings.SplitSeq(among, ",") {
		all = append(all, before+one+after)
	}
	return all
}

// floors are the folders from the bottom to the top. The longest name that fits counts.
var floors = [][]string{
	{"internal/record", "internal/errclass", "internal/bisect", "internal/service/buildinfo", "internal/service/bearer", "internal/service/config", "internal/consumer/lanes", "internal/consumer/limit", "internal/consumer/shards", "internal/collector/routing", "internal/desk/client/address", "internal/desk/peers/target", "internal/history/archive/nightly"},
	{"internal/fallback", "internal/consumer", "internal/collector", "internal/desk", "internal/history"},
	{"internal/kafka", "internal/postgres", "internal/redis", "internal/service"},
	{"internal/audit"},
	{"internal/programs"},
}

// upward are the arrows that go up, each with its reason.
var upward = map[string]string{
	"internal/collector -> internal/service/telemetry": "the names of fields of log lines",
	"internal/history/lookup -> internal/audit/verify": "the reader of spooled files that shares no code with the spool",
}

func floorOf(folder string) int {
	at, longest := -1, 0
	for i, names := range floors {
		for _, name := range names {
			if (folder == name || strings.HasPrefix(folder, name+"/")) && len(name) > longest {
				at, longest = i, len(name)
			}
		}
	}
	return at
}

func TestMap_ArrowsGoDown(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for folder, imports := range folders(t) {
		if strings.HasPrefix(folder, "internal/testkit/") {
			continue
		}
		from := floorOf(folder)
		if from < 0 {
			t.Errorf("%s is on no floor", folder)
		}
		for _, to := range imports {
			if arrow := folder + " -> " + to; strings.HasPrefix(to, "internal/testkit/") || floorOf(to) > from {
				seen[arrow] = true
				if upward[arrow] == "" {
					t.Errorf("%s goes up", arrow)
				}
			}
		}
	}
	for arrow := range upward {
		if !seen[arrow] {
			t.Errorf("%s is an exception that nothing needs any more", arrow)
		}
	}
}

func TestMap_NoTestKitInPrograms(t *testing.T) {
	t.Parallel()
	for folder, imports := range folders(t) {
		for _, to := range imports {
			if strings.HasPrefix(to, "test/") || strings.HasPrefix(to, "internal/testkit/") && !strings.HasPrefix(folder, "internal/testkit/") {
				t.Errorf("%s imports the test kit %s", folder, to)
			}
		}
	}
}
