package errclass_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"docket/internal/errclass"
)

var update = flag.Bool("update", false, "write docs/errors.md again")

// specified is the table of classifications row by row. "22030-22039" means all codes of Postgres in that range.
var specified = []struct {
	codes string
	class errclass.Class
	rule  errclass.Rule
}{
	{"00000 01000 01003 01004 01006 01007 01008 0100C 01P01 02000 02001", errclass.OK, errclass.Pass},
	{"03000", errclass.Systemic, errclass.Bug},
	{"08000 08001 08003 08004 08006", errclass.Transient, errclass.RetryPark},
	{"08007", errclass.Transient, errclass.RetryPark},
	{"08P01", errclass.Transient, errclass.RetryParkOnce},
	{"09000 27000", errclass.Data, errclass.ProbeBisect},
	{"0A000", errclass.Systemic, errclass.RetryHold},
	{"0B000 0F000 0F001 0L000 0LP01 0P000 0Z000 0Z002", errclass.Systemic, errclass.Bug},
	{"20000", errclass.Data, errclass.ProbeBisect},
	{"21000", errclass.Systemic, errclass.Bug},
	{"22001 22003 22007 22008 22009 22015", errclass.Data, errclass.Bisect},
	{"22021 22P05 22P02 22P06 22018 22019 22024 22025 2200B 2200C 2200D 2200F", errclass.Data, errclass.Bisect},
	{"22030 22031 22032 22033 22034 22035 22036 22037 22038 22039 2203A 2203B 2203C 2203D 2203E 2203F 2203G", errclass.Data, errclass.Bisect},
	{"22000 22002 22004 22005 22010 22011 22012 22014 22016 22022 22023 22026 22027 2201B 2201E 2201F 2201G 22P01 2202E 2200G 2200L 2200M 2200N 2200S 2200T 22013 2201W 2201X 2202G 2202H", errclass.Data, errclass.ProbeBisect},
	{"2200H", errclass.Systemic, errclass.Hold},
	{"22P03 22P04", errclass.Systemic, errclass.HoldUnlessAlone},
	{"23000 23001 23P01", errclass.Data, errclass.ProbeBisect},
	{"23502", errclass.Data, errclass.ProbeBisect},
	{"23503", errclass.Data, errclass.ParkOnceBisect},
	{"23505", errclass.Systemic, errclass.Hold},
	{"23514", errclass.Data, errclass.ProbeBisect},
	{"24000 34000", errclass.Systemic, errclass.Bug},
	{"25000 25001 25002 25003 25004 25005 25007 25008 25P01", errclass.Systemic, errclass.Bug},
	{"25006", errclass.Systemic, errclass.RetryHold},
	{"25P02", errclass.Systemic, errclass.Bug},
	{"25P03 25P04", errclass.Transient, errclass.RetryPark},
	{"26000 42P05", errclass.Systemic, errclass.RetryHold},
	{"28000 28P01", errclass.Systemic, errclass.Hold},
	{"2B000 2BP01 2D000 3B000 3B001", errclass.Systemic, errclass.Bug},
	{"2F000 2F002 2F003 2F004 2F005 38000 38001 38002 38003 38004 39000 39001 39004 39P01 39P02 39P03", errclass.Data, errclass.ProbeBisect},
	{"3D000 3F000", errclass.Systemic, errclass.Hold},
	{"40000 40001 40P01", errclass.Transient, errclass.RetryPark},
	{"40002", errclass.Data, errclass.ProbeBisect},
	{"40003", errclass.Transient, errclass.RetryPark},
	{"42501", errclass.Systemic, errclass.Hold},
	{"42P10", errclass.Systemic, errclass.Hold},
	{"428C9 42703 42P01 42704 42883 42804 42846 42P18 42P21 42P22 42P02 42P08 42601 42000", errclass.Systemic, errclass.Hold},
	{"42803 42P20 42P19 42830 42602 42622 42939 42809 42701 42P03 42P04 42723 42P06 42P07 42712 42710 42702 42725 42P09 42611 42P11 42P12 42P13 42P14 42P15 42P16 42P17", errclass.Systemic, errclass.Hold},
	{"44000", errclass.Data, errclass.ProbeBisect},
	{"53000 53200 53400", errclass.Transient, errclass.RetryHalvesPark},
	{"53100", errclass.Systemic, errclass.Hold},
	{"53300", errclass.Transient, errclass.RetryPark},
	{"54000", errclass.Data, errclass.Bisect},
	{"54001", errclass.Data, errclass.Bisect},
	{"54011 54023", errclass.Systemic, errclass.Bug},
	{"55000 55006 55P02 55P04", errclass.Systemic, errclass.Hold},
	{"55P03", errclass.Transient, errclass.RetryPark},
	{"57014", errclass.Transient, errclass.RetryBisect},
	{"57000 57P01 57P02 57P03 57P05", errclass.Transient, errclass.RetryPark},
	{"57P04", errclass.Transient, errclass.RetryParkOnce},
	{"58000 58030 58P01 58P02 F0000 F0001", errclass.Systemic, errclass.Hold},
	{"72000", errclass.Transient, errclass.RetryPark},
	{"HV000 HV001 HV002 HV004 HV005 HV006 HV007 HV008 HV009 HV00A HV00B HV00C HV00D HV00J HV00K HV00L HV00M HV00N HV00P HV00Q HV00R HV010 HV014 HV021 HV024 HV090 HV091", errclass.Transient, errclass.Park},
	{"P0000 P0001 P0004", errclass.Data, errclass.ProbeBisect},
	{"P0002 P0003", errclass.Data, errclass.ProbeBisect},
	{"XX000", errclass.Data, errclass.RetryProbeBisect},
	{"XX001 XX002", errclass.Systemic, errclass.Hold},

	{"network timeout ambiguous_commit pool_exhausted protocol", errclass.Transient, errclass.RetryPark},
	{"dns tls config", errclass.Systemic, errclass.Hold},
	{"canceled", errclass.Cancelled, errclass.Ignore},
	{"pool_closed conn_busy tx_closed too_many_parameters", errclass.Systemic, errclass.Bug},
	{"commit_rollback no_descriptors", errclass.Systemic, errclass.RetryHold},
	{"encode too_slow id_conflict", errclass.Data, errclass.Bisect},
	{"empty syntax duplicate_key missing_field wrong_type out_of_range too_large panic", errclass.Data, errclass.Bisect},
	{"swallowed", errclass.Data, errclass.ProbeBisect},
	{"internal", errclass.Unknown, errclass.RetryPark},
}

func TestTable_IsAsSpecified(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	sqlstates := 0
	for _, want := range specified {
		for code := range strings.FieldsSeq(want.codes) {
			got, ok := errclass.Lookup(code)
			if !ok || got.Code != code || got.Class != want.class || got.Rule != want.rule {
				t.Errorf("Lookup(%s) = %s %s %s, %t; want %s %s", code, got.Code, got.Class, got.Rule, ok, want.class, want.rule)
			}
			if listed[code] {
				t.Errorf("%s is specified twice", code)
			}
			listed[code] = true
			if len(code) == 5 && strings.ToUpper(code) == code {
				sqlstates++
			}
		}
	}
	if sqlstates != 261 { // 260 of Postgres 15 and 25P04
		t.Errorf("%d SQLSTATEs specified, want 261", sqlstates)
	}
	for _, v := range errclass.Table() {
		if !listed[v.Code] {
			t.Errorf("%s is in the table and not specified", v.Code)
		}
	}
	if got, want := len(errclass.Table()), len(listed)+2; got != want {
		t.Errorf("the table has %d rows, want %d", got, want)
	}
}

// pgerrcodeConstants reads the codes from the package's source, so that this test fails if a later version adds one.
func pgerrcodeConstants(t *testing.T) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/jackc/pgerrcode").Output()
	if err != nil {
		t.Fatalf("find pgerrcode: %v", err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "errcode.go"), nil, 0)
	if err != nil {
		t.Fatalf("parse pgerrcode: %v", err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range spec.Values {
			if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				code, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatalf("unquote %s: %v", lit.Value, err)
				}
				codes = append(codes, code)
			}
		}
		return true
	})
	return codes
}

func TestTable_HasEveryCodeOfPgerrcode(t *testing.T) {
	t.Parallel()
	own := map[string]errclass.Classification{}
	for _, v := range errclass.Table() {
		own[v.Code] = v
	}
	codes := pgerrcodeConstants(t)
	if len(codes) < 260 {
		t.Fatalf("found %d codes, want at least 260", len(codes))
	}
	groups := map[string]bool{}
	for _, code := range codes {
		groups[code[:2]] = true
		if v, ok := own[code]; !ok || v.Name == "" {
			t.Errorf("%s has no classification or no name: %+v", code, v)
		}
		// The class must have a default too. An unknown class is recognised by its name.
		unlisted, ok := errclass.Lookup(code[:2] + "9ZZ")
		if !ok || unlisted.Name == "unlisted" {
			t.Errorf("class %s has no default", code[:2])
		}
	}
	if len(groups) != 43 {
		t.Errorf("%d classes, want 43", len(groups))
	}
}

func TestTable_SentencesAndUniqueNames(t *testing.T) {
	t.Parallel()
	for _, v := range errclass.Table() {
		if v.Name == "" || strings.ContainsAny(v.Name, " \n|") {
			t.Errorf("%s: name %q", v.Code, v.Name)
		}
		for what, text := range map[string]string{"why": v.Why, "effect": v.Effect(), "rule's effect": v.Rule.Effect()} {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") || len(text) > 300 {
				t.Errorf("%s: %s is no plain sentence: %q", v.Code, what, text)
			}
		}
	}
}

func TestLookup_UnlistedCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]errclass.Rule{
		"22999": errclass.ProbeBisect, "08ABC": errclass.RetryPark, "42ZZZ": errclass.Hold, "58P03": errclass.Hold,
		"57P06": errclass.RetryPark, "00001": errclass.Pass, "HV999": errclass.Park, "XX003": errclass.RetryProbeBisect,
		"53500": errclass.RetryHalvesPark, "25999": errclass.Bug, "0A001": errclass.RetryHold, "54099": errclass.Bisect,
		"10608": errclass.ProbeBisect, "AB123": errclass.ProbeBisect, "99999": errclass.ProbeBisect, "ZZZZZ": errclass.ProbeBisect,
	} {
		got, ok := errclass.Lookup(code)
		if !ok || got.Rule != want || got.Code != code || got.Name == "" || got.Why == "" {
			t.Errorf("Lookup(%s) = %+v, %t; want rule %s", code, got, ok, want)
		}
	}
	if v, _ := errclass.Lookup("22999"); v.Name != "data_exception" {
		t.Errorf("an unlisted code is named %q, want its class's name", v.Name)
	}
}

func TestLookup_NotACode(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"", "2351", "235144", "2351a", "23 14", "23514 ", "2351\x00", "Äbcd", "nonsense", "NETWORK", "23-14"} {
		if v, ok := errclass.Lookup(code); ok || v != (errclass.Classification{}) {
			t.Errorf("Lookup(%q) = %+v, %t; want nothing", code, v, ok)
		}
	}
}

func TestTable_IsACopyInOrder(t *testing.T) {
	t.Parallel()
	table := errclass.Table()
	last := ""
	for i, v := range table {
		if v.Code == errclass.CodeNetwork {
			if i != 263 {
				t.Errorf("our own codes begin at %d, want 263", i)
			}
			break
		}
		if v.Code < last {
			t.Errorf("%s comes after %s", v.Code, last)
		}
		last = v.Code
	}
	table[0].Why = "spoilt"
	if errclass.Table()[0].Why == "spoilt" {
		t.Error("a caller can change the table")
	}
}

func FuzzLookup_Codes(f *testing.F) {
	own := map[string]bool{}
	for _, v := range errclass.Table() {
		own[v.Code] = true
		f.Add(v.Code)
	}
	for _, code := range []string{"", "23p01", "ZZZZZ", "22é1"} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code string) {
		shaped := len(code) == 5 && strings.Trim(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		v, ok := errclass.Lookup(code)
		if ok != (shaped || own[code]) {
			t.Fatalf("Lookup(%q) = %t", code, ok)
		}
		if ok && (v.Code != code || v.Name == "" || v.Why == "") {
			t.Fatalf("Lookup(%q) = %+v", code, v)
		}
		if text := errclass.Describe(code); !strings.HasSuffix(text, "\n") {
			t.Fatalf("Describe(%q) = %q", code, text)
		}
	})
}

func TestMarkdown_IsTheErrorsPage(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "errors.md")
	want := errclass.Markdown()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Fatalf("docs/errors.md is not what the table says (%v); write it again with\n\tgo test ./internal/errclass -run TestMarkdown_IsTheErrorsPage -update", err)
	}
}
