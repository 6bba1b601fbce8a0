package ledger

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// TestActs_AreAll: an act that is not listed is on no page of the audit.
func TestActs_AreAll(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "state.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if kind, named := v.Type.(*ast.Ident); !named || kind.Name != "Act" {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if found++; !slices.Contains(Acts(), Act(text)) {
			t.Errorf("%s is not listed", text)
		}
		return true
	})
	if found != len(Acts()) {
		t.Errorf("%d acts are declared, %d listed", found, len(Acts()))
	}
	for _, a := range []Act{Reopened, Assigned, Snoozed} {
		if !slices.Contains(PeopleActs(), a) {
			t.Errorf("%s is decided by people", a)
		}
	}
}
