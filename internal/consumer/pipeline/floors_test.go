package pipeline

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floors are the files of the folder from the bottom up: rules and data, one batch, single acts, the loop, the story.
// A file uses only files before it.
var floors = strings.Fields(`
	ports.go config.go
	decide.go classify.go cause.go flood.go item.go rowhint.go behind.go turn.go portion.go breaker.go election.go rota.go foresight.go progress.go large.go scratch.go
	process.go carrier.go lines.go report.go observe.go memory.go begin.go refused.go
	decode.go further.go
	tokens.go write.go probe.go hold.go locked.go route.go foresee.go confirm.go search.go
	store.go settle.go
	pipeline.go
`)

// noPackage replaces each imported package: only the names of this folder count.
type noPackage map[string]*types.Package

func (n noPackage) Import(name string) (*types.Package, error) {
	if n[name] == nil {
		n[name] = types.NewPackage(name, path.Base(name))
		n[name].MarkComplete()
	}
	return n[name], nil
}

// arrows returns the names that each file uses of each other file.
func arrows(t *testing.T) map[[2]string][]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set, files := token.NewFileSet(), []*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: noPackage{}, Error: func(error) {}}
	pkg, _ := check.Check("pipeline", set, files, info) // imported packages are missing, so there are errors
	all := map[[2]string][]string{}
	for id, used := range info.Uses {
		if used.Pkg() != pkg {
			continue
		}
		from, to := set.Position(id.Pos()).Filename, set.Position(used.Pos()).Filename
		if key := [2]string{from, to}; from != to && !slices.Contains(all[key], id.Name) {
			all[key] = append(all[key], id.Name)
		}
	}
	return all
}

// TestFloors_NoArrowRunsUpward checks that a file uses only files below it.
func TestFloors_NoArrowRunsUpward(t *testing.T) {
	t.Parallel()
	up := 0
	all := arrows(t)
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		from, to := slices.Index(floors, key[0]), slices.Index(floors, key[1])
		if from < 0 || to < 0 || from < to {
			up++
			t.Errorf("%s uses %v of %s", key[0], all[key], key[1])
		}
	}
	t.Logf("%d arrows, %d of them upward", len(all), up)
	for _, name := range floors {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a floor without its file: %v", err)
		}
	}
}
