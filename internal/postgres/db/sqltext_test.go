package db

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// built are the places that send a statement which is not one constant. Look before you add another: its parts must be constants
// of the package, chosen by the question and never by a value that came in. Only the first has another part.
var built = []string{
	"schema/checkpartitions.go countStrays", // the name of a table that regclass quoted
	// Names of columns and tables that the server quoted; the days of a COPY, which takes no parameters, are written from a date.
	"historydb/archive.go strayDays", "historydb/archive.go sharedDays", "historydb/archiverows.go copyOut", "historydb/archiveread.go Read", "historydb/archiveread.go joined", "historydb/archiveseen.go unchanged", "historydb/archiveslices.go measure", "historydb/archivestates.go statesBehind", "historydb/archiveload.go copiedAtOnce", "historydb/archiveload.go staged", "historydb/archiveload.go equal", "historydb/archiveload.go differing", "historydb/archivecount.go countBefore", "historydb/archivecount.go countLeaving", "historydb/archiveletters.go Read",
	// The name of the table, or of a day that was taken out, which the server quoted.
	"historydb/countleft.go lateRows", "historydb/countleft.go back", "historydb/ways.go oldestBegin", "historydb/ways.go skip", "historydb/places.go places", "historydb/prefix.go beginning", "historydb/reader.go byID", "historydb/reader.go decisions",
	"schema/partition.go swap", "schema/partition.go days", "store/transaction.go asked", "store/lookup.go look",
	"ledgerdb/days.go countersSQL", "ledgerdb/jobs.go jobs", "ledgerdb/jobs.go changedJobs", "ledgerdb/list.go combinations", "ledgerdb/list.go collect",
	"ledgerdb/matching.go groupsOf", "ledgerdb/matching.go lock", "ledgerdb/show.go values",
	"ledgerdb/tallies.go tallies", "ledgerdb/tallies.go paths", "ledgerdb/tallies.go times", "ledgerdb/tallies.go scanned", "ledgerdb/tallies.go countsIn",
	"schema/indexes.go index", "schema/indexes.go indexEach", "schema/indexes.go IndexDays", // names that format quoted
	"ledgerdb/audits.go over", "ledgerdb/decide.go retry", "ledgerdb/actrule.go act", "ledgerdb/actrule.go choose", "ledgerdb/views.go act", "ledgerdb/sessions.go Create", // one of some constants
	"ledgerdb/audits.go window", "ledgerdb/audits.go groupAudits", "historydb/countleft.go late", "ledgerdb/rules.go rules", "historydb/statesread.go Revisions", "historydb/brief.go brief", "historydb/ways.go look", "historydb/follow.go latest", "historydb/follow.go since", "historydb/stats.go counted", "historydb/stats.go live", "historydb/statesrows.go sorted", "historydb/statesrows.go read", "historydb/statesread.go States", "historydb/statesread.go Flips", "historydb/waiting.go Waiting", // conditions by what is asked for
}

// TestSQL_IsConstant has all that goes to the server as a statement be constants, so that no value can become a part of it.
func TestSQL_IsConstant(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		files[strings.TrimPrefix(filepath.ToSlash(name), "../")], err = parser.ParseFile(set, name, nil, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	constant := map[string]bool{} // by package and name
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					for _, id := range s.(*ast.ValueSpec).Names {
						constant[file.Name.Name+"."+id.Name] = true
					}
				}
			}
			return true
		})
	}
	calls, found := 0, []string{}
	for name, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sql := statement(n)
				if sql == nil {
					return true
				}
				calls++
				if where := name + " " + f.Name.Name; !isConstant(sql, file.Name.Name, constant) {
					found = append(found, where)
					if !slices.Contains(built, where) {
						t.Errorf("%s: the statement is put together: %s", set.Position(sql.Pos()), f.Name.Name)
					}
				}
				return true
			})
		}
	}
	if calls < 60 {
		t.Errorf("only %d statements were found", calls)
	}
	for _, where := range built {
		if !slices.Contains(found, where) {
			t.Errorf("%s puts no statement together any more", where)
		}
	}
}

// statement is the SQL that a call sends, nil where it sends none.
func statement(n ast.Node) ast.Expr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	at, known := map[string]int{"Exec": 1, "Query": 1, "QueryRow": 1, "SendQueryParams": 0, "ExecParams": 1, "Queue": 0, "CopyFrom": 2, "CopyTo": 2, "Prepare": 2, "SendPrepare": 1}[f.Sel.Name]
	if !known || len(call.Args) <= at {
		return nil
	}
	return call.Args[at]
}

// isConstant says whether an expression in a package is made of constants alone.
func isConstant(e ast.Expr, pkg string, constant map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return constant[pkg+"."+e.Name]
	case *ast.BinaryExpr:
		return isConstant(e.X, pkg, constant) && isConstant(e.Y, pkg, constant)
	case *ast.ParenExpr:
		return isConstant(e.X, pkg, constant)
	case *ast.SelectorExpr: // of package migrations, which embeds them, or of a package beside this one
		of, ok := e.X.(*ast.Ident)
		return ok && (of.Name == "migrations" || constant[of.Name+"."+e.Sel.Name])
	}
	return false
}
