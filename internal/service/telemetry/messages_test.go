package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// messages returns the messages of all log lines in the programs with their levels. It refuses a message that is not a
// string literal, because values belong into fields.
func messages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, room := range []string{"../../../internal", "../../../cmd"} {
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
			client := filepath.Base(filepath.Dir(path)) == "kafka"
			note := func(message ast.Expr, at string) {
				literal, ok := message.(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: the message is not a string literal", files.Position(message.Pos()))
					return
				}
				said, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Error(err)
				}
				if !slices.Contains(found[said], at) {
					found[said] = append(found[said], at)
				}
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
						t.Errorf("%s: the line has no constant message", files.Position(call.Pos()))
					}
				case "Msg":
					note(call.Args[0], level(method.X))
				case "Log":
					if at, ok := clientLevel(call.Args); ok && !(client && passed(call.Args[1])) {
						note(call.Args[1], at)
					}
				case teller:
					if client {
						note(call.Args[0], "warn")
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

// teller is the method of package kafka that logs the message it is given, at warn.
const teller = "say"

// passed reports whether a message is the parameter of [teller], whose callers are seen instead.
func passed(message ast.Expr) bool {
	name, ok := message.(*ast.Ident)
	return ok && name.Name == "msg"
}

// clientLevel returns the level of a call to the logger of the Kafka client.
func clientLevel(args []ast.Expr) (string, bool) {
	if len(args) < 2 {
		return "", false
	}
	constant, ok := args[0].(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	at, ok := strings.CutPrefix(constant.Sel.Name, "LogLevel")
	return strings.ToLower(at), ok
}

// level returns the level at which a chain of calls began, or "" where the chain does not name one. A call of "on"
// continues the line in its first argument.
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

func TestMessages_Documented(t *testing.T) {
	t.Parallel()
	explained := map[string]string{}
	for line := range strings.Lines(page(t, "logs.md")) {
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
			t.Errorf("docs/logs.md explains %q, which no program logs", said)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d messages were found", len(all))
	}
}

// The rule for a message: noun and verb, past tense, lower case, at most mostWords words. The tense is for reviewers.
const mostWords = 8

// unplain finds words that neither a message nor the page of messages may have, and sentences that begin with a relative
// clause.
var unplain = regexp.MustCompile(`(?i:\b(anew|mend(s|ed)?|go(es)? on|lies|stands?|sake|of ours|whoever|brought home|is no|are no)\b)|` +
	`(^|[.|] )(What|Who|That which|Of which|Each of which)\b`)

func TestMessages_Plain(t *testing.T) {
	t.Parallel()
	for said := range messages(t) {
		if n := len(strings.Fields(said)); n < 2 || n > mostWords {
			t.Errorf("%q has %d words, want 2 to %d", said, n, mostWords)
		}
		if first, _ := utf8.DecodeRuneInString(said); !unicode.IsLower(first) {
			t.Errorf("%q does not begin with a small letter", said)
		}
		if strings.ContainsAny(said, ".:;!?") {
			t.Errorf("%q has punctuation; advice belongs into the field hint", said)
		}
		if word := unplain.FindString(said); word != "" {
			t.Errorf("%q has the word %q", said, word)
		}
	}
	for line := range strings.Lines(page(t, "logs.md")) {
		if words := unplain.FindString(line); words != "" {
			t.Errorf("docs/logs.md has %q: %s", words, line)
		}
	}
}

func TestMessages_Renamed(t *testing.T) {
	t.Parallel()
	_, table, found := strings.Cut(page(t, "upgrade.md"), "| old message | new message |")
	if !found {
		t.Fatal("docs/upgrade.md has no table of renamed messages")
	}
	all := messages(t)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "`")
		if len(cells) != 5 {
			continue
		}
		if was, is := cells[1], cells[3]; all[was] != nil || all[is] == nil {
			t.Errorf("docs/upgrade.md says that %q became %q; the source has %v and %v", was, is, all[was], all[is])
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
