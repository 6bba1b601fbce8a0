package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// messages are those of all log lines in the programs, by level. A message that is not a constant is refused: whatever
// varies stands under a key.
func messages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, room := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, text, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				switch method.Sel.Name {
				case "Msgf", "MsgFunc", "Send":
					if level(method.X) != "" {
						t.Errorf("%s: a line without a constant message", files.Position(call.Pos()))
					}
				case "Msg":
					message, ok := call.Args[0].(*ast.BasicLit)
					if !ok {
						t.Errorf("%s: a message that is not a constant", files.Position(call.Pos()))
						return true
					}
					said, err := strconv.Unquote(message.Value)
					if err != nil {
						t.Error(err)
					}
					if at := level(method.X); !slices.Contains(found[said], at) {
						found[said] = append(found[said], at)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// level is that at which a chain of calls began, empty where it does not say. A call of "on" goes on with the line that it
// is given.
func level(x ast.Expr) string {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if slices.Contains([]string{"Debug", "Info", "Warn", "Error", "WithLevel"}, f.Sel.Name) {
			return strings.ToLower(f.Sel.Name)
		}
		if f.Sel.Name != "on" {
			return level(f.X)
		}
	case *ast.Ident:
		if f.Name != "on" {
			return ""
		}
	}
	return level(call.Args[0])
}

func TestEveryMessageIsConstantAndExplainedInTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 4 {
			explained[strings.Trim(cells[0], "| `")] = cells[1]
		}
	}
	all := messages(t)
	for said, levels := range all {
		at, ok := explained[said]
		if !ok {
			t.Errorf("docs/logs.md does not explain %q (%v)", said, levels)
			continue
		}
		for _, l := range levels {
			if l != "" && l != "withlevel" && !strings.Contains(at, l) {
				t.Errorf("docs/logs.md has %q at %s, the source at %s", said, at, l)
			}
		}
	}
	for said := range explained {
		if all[said] == nil {
			t.Errorf("docs/logs.md explains %q, which nobody says", said)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d messages were found", len(all))
	}
}
