package main

import (
	"bytes"
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMutants_ApplyToTheCode fails when code moved away under a mutant. Move the mutant with the code.
func TestMutants_ApplyToTheCode(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(lists)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		patched, err := m.files(root)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for file, text := range patched {
			if filepath.Ext(file) != ".go" {
				continue // SQL, that is
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// TestMutants_NamedTestsExist fails when a test was renamed or moved away from under a mutant.
func TestMutants_NamedTestsExist(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(lists)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]string{} // by package: its tests' code
	for _, m := range all {
		for _, s := range m.tests {
			if _, read := declared[s.pkg]; !read {
				files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(s.pkg), "*_test.go"))
				if err != nil || len(files) == 0 {
					t.Fatalf("%s: %s has no tests: %v", m.name, s.pkg, err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					declared[s.pkg] += "\n" + string(text)
				}
			}
			for _, name := range s.names() {
				if !strings.Contains(declared[s.pkg], "\nfunc "+name+"(t *testing.T)") {
					t.Errorf("%s: no test in %s is called %s", m.name, s.pkg, name)
				}
			}
		}
	}
}

func TestParse_Errors(t *testing.T) {
	t.Parallel()
	const good = "== a\nbreaks: x\ntest: ./p\n@@ p/p.go\n-one\n+two\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing in it":       {"words", "no mutant in it"},
		"no promise":          {"== a\ntest: ./p\n@@ p/p.go\n-one\n+two\n", "a: it does not say what it breaks"},
		"no test":             {"== a\nbreaks: x\n@@ p/p.go\n-one\n+two\n", "a: it names no test"},
		"no package":          {"== a\nbreaks: x\ntest: TestA\n@@ p/p.go\n-one\n+two\n", `a: no package: "TestA"`},
		"an argument":         {"== a\nbreaks: x\ntest: ./p -race\n@@ p/p.go\n-one\n+two\n", `not the name of a test: "-race"`},
		"no change":           {"== a\nbreaks: x\ntest: ./p\n", "a: it changes nothing"},
		"changes nothing":     {"== a\nbreaks: x\ntest: ./p\n@@ p/p.go\n one\n", "changes none"},
		"nothing to find":     {"== a\nbreaks: x\ntest: ./p\n@@ p/p.go\n+one\n", "no lines to find"},
		"unknown field":       {"== a\nbreaks: x\ntests: ./p\n@@ p/p.go\n-one\n+two\n", `not understood: "tests: ./p"`},
		"line without sign":   {"== a\nbreaks: x\ntest: ./p\n@@ p/p.go\n-one\ntwo\n", "begins with none of"},
		"name with a space":   {"== a b\nbreaks: x\ntest: ./p\n@@ p/p.go\n-one\n+two\n", "its name"},
		"the same name once":  {good, ""},
		"the same name twice": {good + good, "two mutants are called a"},
	} {
		_, err := readAll(fstest.MapFS{"list/1.txt": {Data: []byte(c.text)}})
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestApply_OldLinesExactlyOnce(t *testing.T) {
	t.Parallel()
	h := hunk{file: "f.go", old: "one\n", now: "1\n"}
	for text, want := range map[string]string{
		"zero\none\ntwo\n":     "zero\n1\ntwo\n",
		"one\n":                "1\n",
		"someone\none\n":       "someone\n1\n",
		"zero\n":               "!no such lines any more",
		"someone\n":            "!no such lines any more",
		"one more\n":           "!no such lines any more",
		"one\ntwo\none\n":      "!2 times",
		"one\none\nthree\n":    "!times",
		"two\nthree\n one\n\n": "!no such lines any more",
	} {
		got, err := h.apply(text)
		if wrong, isError := strings.CutPrefix(want, "!"); isError {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%q: %q, %v, want the error %q", text, got, err, wrong)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestOutcome_OnlyAFailedTestCatches(t *testing.T) {
	t.Parallel()
	const begun = `{"Action":"run","Test":"TestB"}` + "\n"
	for name, c := range map[string]struct{ stream, said string }{
		"all passed":       {`{"Action":"pass","Test":"TestA"}`, ""},
		"one failed":       {`{"Action":"fail","Test":"TestA/sub"}` + "\n" + `{"Action":"fail","Test":"TestA"}`, "TestA/sub"},
		"a panic":          {`{"Action":"output","Test":"TestA","Output":"panic: no\n"}` + "\n" + `{"Action":"fail","Test":"TestA"}`, "TestA (panic)"},
		"a goroutine left": {`{"Action":"output","Output":"goleak: Errors on successful test run: found\n"}` + "\n" + `{"Action":"fail"}`, "the package as a whole (goroutine left behind)"},
		"a hang": {`{"Action":"output","Output":"panic: test timed out after 1s\n"}` + "\n" +
			`{"Action":"output","Output":"running tests:\n"}` + "\n" +
			`{"Action":"output","Output":"\tTestSlow (1s)\n"}` + "\n" + `{"Action":"fail"}`,
			"TestSlow (hangs until the test's own time limit)"},
		"a test that ends the process": {begun + `{"Action":"fail"}`, "TestB (ended the process)"},
		"a stream that breaks off":     {begun, "TestB (ended the process)"},
		"the process ends outside":     {`{"Action":"fail"}`, "the package as a whole (ended the process)"},
	} {
		if f, err := watch(strings.NewReader(c.stream + "\n")); f.said() != c.said || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, f.said(), err, c.said)
		}
	}
}

// TestRun_SmallModule lets the real go command look for mutants, one of every fate.
func TestRun_SmallModule(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module small\n\ngo 1.26\n",
		"p/p.go":      "package p\n\n// One is.\nfunc One() int {\n\treturn 1\n}\n\n// Two is.\nfunc Two() int {\n\treturn 2\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(One())\n\t}\n}\n",
		"n/n.go":      "package n\n",
		"q/q_test.go": "package q\n\nimport \"testing\"\n\nfunc TestNever(t *testing.T) { t.Fatal() }\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stageOf := func(text string) stage {
		s, err := parseStage(text, false)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	change := func(name, test, from, to string) mutant {
		return mutant{name: name, breaks: "it", tests: []stage{stageOf(test)}, hunks: []hunk{{file: "p/p.go", old: "\treturn " + from + "\n", now: "\treturn " + to + "\n"}}}
	}
	bench, err := newBench(context.Background(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	caught, survives := change("caught", "./p", "1", "3"), change("survives", "./p", "2", "3")
	l := &lab{root: root, scratch: t.TempDir(), jobs: 2, progress: &bytes.Buffer{}, bench: bench}

	outcomes, err := l.run(context.Background(), []mutant{caught, survives, change("no-code", "./p", "2", "nothing"), change("moved", "./p", "4", "5")})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"caught by TestOne in p", "SURVIVED", "BROKEN", "no such lines any more"} {
		if !strings.Contains(outcomes[i].String(), want) {
			t.Errorf("%v, want %q", outcomes[i], want)
		}
	}
	var out strings.Builder
	for n, want := range []string{"1 planted, 1 caught, 0 survived; 1 s\n", "2 planted, 1 caught, 1 survived; 1 s\n", "3 planted, 1 caught, 1 survived, 1 broken; 1 s\n"} {
		out.Reset()
		if err := report(&out, outcomes[:n+1], "1 s", false); (err == nil) != (n == 0) || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%d: %v and %q, want %q", n, err, out.String(), want)
		}
	}

	if err := l.check(context.Background(), []mutant{caught, change("no-code", "./p", "2", "nothing")}); err == nil || !strings.Contains(err.Error(), "no-code: it does not compile") {
		t.Errorf("check: %v", err)
	}
	for test, want := range map[string]string{
		"./q": "without a mutant TestNever fails in q", "./p TestNone": "no test runs in p TestNone", "./p TestOne TestNone": "no test in p is called TestNone",
		"./r": "the tests of ./r do not build", "./n": "./n has no tests",
	} {
		if _, err := l.run(context.Background(), []mutant{change("caught", test, "1", "3")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "p/p.go")); err != nil || strings.Contains(string(text), "3") {
		t.Errorf("the tree was touched: %s %v", text, err)
	}
}
