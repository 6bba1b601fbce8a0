package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	directive = regexp.MustCompile(`^//[a-z]+(:|nolint)|^//nolint|^// ?(Output|Unordered output):|^// \+build`)
	// helpMethods register a flag; the help text is their last argument.
	helpMethods = regexp.MustCompile(`^(Bool|Count|Duration|Float64|Func|Int|Int64|String|StringArray|StringSlice|Text|Uint|Uint64|Var)?(Var)?P?(Func)?$`)
)

// goFolder checks the Go files of one folder, without those below it.
func goFolder(root, folder string) ([]Finding, error) {
	paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no Go files", folder)
	}
	var all []Finding
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := goFile(folder+"/"+filepath.Base(path), text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// goFile checks the comments, the log lines and the help texts of one file.
func goFile(name string, text []byte) ([]Finding, error) {
	if generated.Match(text) {
		return nil, nil
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, group := range parsed.Comments {
		found = append(found, comment(name, fset, group)...)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = append(found, call(name, fset, n)...)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Short" || key.Name == "Long" || key.Name == "Usage") {
				found = append(found, help(name, fset, n.Value)...)
			}
		}
		return true
	})
	return found, nil
}

// comment checks a group of comments, paragraph by paragraph. Indented lines are code.
func comment(name string, fset *token.FileSet, group *ast.CommentGroup) []Finding {
	var found []Finding
	var open block
	flush := func() {
		if len(open.lines) > 0 {
			said := plain(strings.Join(open.lines, "\n"))
			found = append(found, check(name, block{strings.Split(said, "\n"), open.first, false})...)
		}
		open = block{}
	}
	for _, c := range group.List {
		if directive.MatchString(c.Text) {
			flush()
			continue
		}
		first := fset.Position(c.Pos()).Line
		for i, line := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*"), "*/"), "\n") {
			body := strings.TrimPrefix(line, " ")
			mark := item.FindString(body)
			switch {
			case strings.TrimSpace(body) == "":
				flush()
				continue
			case mark != "":
				flush()
				body = body[len(mark):]
			case strings.HasPrefix(body, "\t") || strings.HasPrefix(body, "   "):
				if len(open.lines) == 0 {
					continue
				}
				body = strings.TrimSpace(body)
			case strings.HasPrefix(body, "# "):
				flush()
				continue
			}
			if len(open.lines) == 0 {
				open.first = first + i
			}
			open.lines = append(open.lines, body)
		}
	}
	flush()
	return found
}

// call checks the message of a log line, and the help of a flag.
func call(name string, fset *token.FileSet, c *ast.CallExpr) []Finding {
	method, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 {
		return nil
	}
	switch {
	case (method.Sel.Name == "Msg" || method.Sel.Name == "Msgf") && (len(c.Args) == 1 || method.Sel.Name == "Msgf"):
		said, ok := literal(c.Args[0])
		if !ok {
			return nil
		}
		line := fset.Position(c.Args[0].Pos()).Line
		found := check(name, block{[]string{said}, line, false})
		if n := words(said); n > maxLogLine {
			found = append(found, Finding{name, line, fmt.Sprintf("%d words in a log line, at most %d", n, maxLogLine), said})
		}
		return found
	case len(c.Args) >= 3 && helpMethods.MatchString(method.Sel.Name):
		return help(name, fset, c.Args[len(c.Args)-1])
	}
	return nil
}

// help checks a help text where it is a constant.
func help(name string, fset *token.FileSet, e ast.Expr) []Finding {
	said, ok := literal(e)
	if !ok {
		return nil
	}
	var found []Finding
	line := fset.Position(e.Pos()).Line
	for _, paragraph := range strings.Split(said, "\n\n") {
		var prose []string
		for _, l := range strings.Split(paragraph, "\n") {
			if !strings.HasPrefix(l, "  ") && !strings.HasPrefix(l, "\t") {
				prose = append(prose, l)
			}
		}
		found = append(found, check(name, block{[]string{plain(strings.Join(prose, " "))}, line, false})...)
	}
	return found
}

// literal returns a string that is written in the code, also one of several parts.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		said, err := strconv.Unquote(e.Value)
		return said, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		if !ok || e.Op != token.ADD {
			return "", false
		}
		right, ok := literal(e.Y)
		return left + right, ok
	case *ast.ParenExpr:
		return literal(e.X)
	}
	return "", false
}
