package browser

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// screen is a page as a person sees it. A new page of the console gets a line in screens.
type screen struct {
	name string // also of its picture
	// route is its pattern in the console's table.
	route string
	// path is its address. The prepared desk replaces {decision}, {other}, {group}, {letter}, {job} and {proposal}.
	path string
	// steps lead from the page of the address to this one: field=text fills, another text is a button.
	steps []string
	// text is on it.
	text   string
	status int    // 0: 200
	as     string // the role; empty: operator
	// unscripted is on it without scripts alone: then it cannot follow, and says so.
	unscripted string
	// picture says whether docs/console has its picture.
	picture bool
}

var screens = []screen{
	{name: "now", route: "GET /{$}", path: "/", text: "Dead letters", picture: true},
	{name: "decisions", route: "GET /decisions", path: "/decisions?since=24h", text: "Requested by", picture: true},
	{name: "tail", route: "GET /decisions", path: "/decisions?since=24h&verdict=denied&live=1", text: "New decisions", unscripted: "Without JavaScript, load the page again"},
	{name: "nothing", route: "GET /decisions", path: "/decisions?path=none&since=1h", text: "No decision fits"},
	{name: "wrong", route: "GET /decisions", path: "/decisions?q=colour:red", text: "colour", status: 422},
	{name: "why", route: "GET /decisions/{id}", path: "/decisions/{decision}", text: "known by", picture: true},
	{name: "columns", route: "GET /decisions/{id}", path: "/decisions/{decision}", text: "sees columns", as: "viewer"},
	{name: "absent", route: "GET /decisions/{id}", path: "/decisions/none-of-these", text: "Not found", status: 404},
	{name: "compare", route: "GET /compare", path: "/compare?a={other}&b={decision}", text: "changes", picture: true},
	{name: "choose", route: "GET /compare", path: "/compare", text: "Choose two decisions"},
	{name: "rates", route: "GET /rates", path: "/rates?since=24h", text: "Deny rate", picture: true},
	{name: "flips", route: "GET /flips", path: "/flips?since=7d", text: "Changes of the verdict", picture: true},
	{name: "subject", route: "GET /subjects/{subject}", path: "/subjects/checkout-7", text: "The newest answer", picture: true},
	{name: "why-by-query", route: "GET /decisions", path: "/decisions?id={decision}", text: "known by"},
	{name: "subject-by-query", route: "GET /subjects", path: "/subjects?subject=checkout-7", text: "The newest answer"},
	{name: "where", route: "GET /where", path: "/where?q={decision}", text: "Where was looked", picture: true},
	{name: "letters", route: "GET /dead-letters", path: "/dead-letters", text: "Groups", picture: true},
	{name: "older", route: "GET /dead-letters", path: "/dead-letters?jobs=5", text: "Older jobs"},
	{name: "group", route: "GET /dead-letters/groups/{fingerprint}", path: "/dead-letters/groups/{group}", text: "Retry all of them", picture: true},
	{name: "letter", route: "GET /dead-letters/{id}", path: "/dead-letters/{letter}?payload=1", text: "History", picture: true},
	{name: "job", route: "GET /jobs/{id}", path: "/jobs/{job}", text: "Made by", picture: true},
	{name: "lanes", route: "GET /lanes", path: "/lanes", text: "at work", picture: true},
	{name: "check", route: "GET /check", path: "/check", text: "asked for by", picture: true},
	{name: "archive", route: "GET /archive", path: "/archive", text: "Where the decisions of each day are", picture: true},
	{name: "audit", route: "GET /audit", path: "/audit?act=all", text: "Audit", picture: true},
	{name: "dry-run", route: "POST /dead-letters/groups/{fingerprint}/dry-run", path: "/dead-letters/groups/{group}", steps: []string{"Dry run"}, text: "Would fail"},
	{name: "count", route: "POST /dead-letters/groups/{fingerprint}/count", path: "/dead-letters/groups/{group}", steps: []string{"Resolve all of them"}, text: "without storing them"},
	{name: "edit", route: "POST /dead-letters/{id}/edit", path: "/dead-letters/{letter}", steps: []string{"Edit"}, text: "Show the difference"},
	{name: "difference", route: "POST /dead-letters/{id}/edit/preview", path: "/dead-letters/{letter}", steps: []string{"Edit", `payload={"path":"billing/refunds"}`, "reason=a long name of a path, which was wrong", "Show the difference"}, text: "Propose this edit", as: "admin"},
	{name: "proposal", route: "GET /proposals/{id}", path: "/proposals/{proposal}", text: "Decide", as: "admin"},
	{name: "no-proposal", route: "GET /proposals/{id}", path: "/proposals/999999", text: "Not found", status: 404},
	{name: "signin", route: "GET /login/oidc", path: "/login/oidc", text: "does not answer", status: 503, as: "nobody"},
	{name: "refused", route: "GET /flips", path: "/flips", text: "Not allowed", status: 403, as: "viewer"},
	{name: "login", route: "GET /login", path: "/login", text: "Log in to the desk", as: "nobody", picture: true},
}

// files are routes that are no pages.
var files = []string{"GET /assets/{version}/{name}", "GET /events/{page}", "GET /events/decisions", "GET /export/decisions"}

// TestScreens_HaveEveryRoute: a page that this table lacks is tested by no browser.
func TestScreens_HaveEveryRoute(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range screens {
		seen[s.route] = true
	}
	routes := routes(t)
	for _, route := range routes {
		if strings.HasPrefix(route, "GET ") && !seen[route] && !slices.Contains(files, route) {
			t.Errorf("no screen has the route %s", route)
		}
	}
	for route := range seen {
		if !slices.Contains(routes, route) {
			t.Errorf("the console has no route %s", route)
		}
	}
}

// routes are the patterns of the console's table, as its source has them: which of them a desk serves depends on its
// settings.
func routes(t *testing.T) (all []string) {
	t.Helper()
	sources, err := filepath.Glob("../../internal/desk/console/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			pair, is := n.(*ast.KeyValueExpr)
			if !is {
				return true
			}
			key, named := pair.Key.(*ast.Ident)
			value, text := pair.Value.(*ast.BasicLit)
			if named && text && key.Name == "pattern" {
				if pattern, err := strconv.Unquote(value.Value); err == nil {
					all = append(all, pattern)
				}
			}
			return true
		})
	}
	if len(all) < 15 {
		t.Fatalf("the console has the routes %v", all)
	}
	return all
}
