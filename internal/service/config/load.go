package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Complaint is one thing that is wrong with the settings.
type Complaint struct {
	Variable string // the variable to change
	Text     string // the fault and the remedy; never the value of a secret
}

func (c Complaint) Error() string { return c.Variable + ": " + c.Text }

// Complaints is the error of [Load]: all there is to complain about, a line each.
type Complaints []Complaint

func (c Complaints) Error() string {
	lines := make([]string, len(c))
	for i := range c {
		lines[i] = c[i].Error()
	}
	return strings.Join(lines, "\n")
}

const prefix = "DOCKET_"

// Load reads the settings of a program from environment variables in the form of os.Environ, and from the file that
// [FileVariable] names; the environment wins. The error is [Complaints]
// with everything that is wrong. The warnings are variables that look like ours and are not.
func Load(p Program, environ []string) (Settings, []Complaint, error) {
	return LoadWith(p, environ, nil)
}

// Judges are those who know what the text of a setting means, by the variable: a URL is known to its driver alone. A judge
// is asked where nothing else is wrong with the setting and it is not empty. It returns what is wrong, in words that quote
// nothing of it, and nothing where it is fine.
type Judges map[string]func(text string) (wrong string)

// LoadWith is Load with judges.
func LoadWith(p Program, environ []string, judges Judges) (Settings, []Complaint, error) {
	return load(p, environ, judges, nil, nil)
}

// LoadWithout is [LoadWith] where settings that are required otherwise need not be set.
func LoadWithout(p Program, environ []string, judges Judges, variables ...string) (Settings, []Complaint, error) {
	return load(p, environ, judges, variables, nil)
}

// LoadKafka is Load for commands that need the brokers alone: no setting about a database is required, read or judged.
func LoadKafka(p Program, environ []string) (Settings, []Complaint, error) {
	return load(p, environ, nil, nil, []string{databaseVariable, urlsVariable})
}

// load requires no setting of without, and leaves out those that are spared.
func load(p Program, environ []string, judges Judges, without, spared []string) (Settings, []Complaint, error) {
	l := loader{program: p, bad: map[string]bool{}, judges: judges, without: map[string]bool{}, kafkaAlone: len(spared) > 0}
	for _, v := range without {
		l.without[v] = true
	}
	l.complaints, l.values = withFile(ours(environ))
	for _, name := range spared {
		l.bad[name] = true
		delete(l.values, name)
		delete(l.values, name+fileSuffix)
	}
	for _, c := range l.complaints {
		l.bad[c.Variable] = true
	}
	l.others()
	l.secretFiles()
	l.unknown()
	l.defaults()
	l.parse()
	l.ranges()
	l.missing()
	l.relations()
	l.judge()
	if len(l.complaints) > 0 {
		l.sort()
		return Settings{}, l.warnings, l.complaints
	}
	return l.settings, l.warnings, nil
}

// Lookup is the text of one setting of a program, its default where the environment has none. Commands that need no
// more than that one use it, so that they work where the rest is not set.
func Lookup(p Program, environ []string, name string) string {
	for _, s := range Table() {
		if s.Name != name {
			continue
		}
		if v, ok := valuesOf(environ)[name]; ok && (v != "" || s.keepNull) {
			return v
		}
		return s.Default(p)
	}
	return ""
}

// valuesOf are the variables with those of the file. Load reports the faults of the file.
func valuesOf(environ []string) map[string]string {
	_, values := withFile(ours(environ))
	return values
}

func ours(environ []string) map[string]string {
	values := env.ToMap(environ)
	for name := range values {
		if !strings.HasPrefix(name, prefix) {
			delete(values, name)
		}
	}
	return values
}

type loader struct {
	program    Program
	values     map[string]string
	settings   Settings
	complaints Complaints
	warnings   []Complaint
	judges     Judges
	without    map[string]bool // settings that need not be set
	kafkaAlone bool            // no database is looked at
	bad        map[string]bool // variables already complained about, and those of other programs: no complaint on their account
}

func (l *loader) complain(variable, format string, args ...any) {
	l.bad[variable] = true
	l.complaints = append(l.complaints, Complaint{Variable: variable, Text: fmt.Sprintf(format, args...)})
}

// fine says that nothing is wrong so far with any of these variables.
func (l *loader) fine(variables ...string) bool {
	return !slices.ContainsFunc(variables, func(v string) bool { return l.bad[v] })
}

func (l *loader) sort() {
	order := map[string]int{}
	for i, s := range Table() {
		order[s.Name] = i + 1
	}
	slices.SortStableFunc(l.complaints, func(a, b Complaint) int { return order[a.Variable] - order[b.Variable] })
}

const (
	fileSuffix    = "_FILE"
	maxSecretFile = 64 << 10
)

// others takes away what belongs to other programs alone: it is neither read nor judged.
func (l *loader) others() {
	for _, s := range Table() {
		if !s.Of(l.program) {
			l.bad[s.Name] = true
			delete(l.values, s.Name)
			delete(l.values, s.Name+fileSuffix)
		}
	}
}

// secretFiles puts the contents of X_FILE in the place of X.
func (l *loader) secretFiles() {
	for _, s := range Table() {
		from := s.Name + fileSuffix
		path, given := l.values[from]
		if !s.Secret || !given {
			continue
		}
		delete(l.values, from)
		if path == "" {
			continue
		}
		if l.values[s.Name] != "" {
			l.complain(s.Name, "is set together with %s; set one of them", from)
			continue
		}
		secret, err := readSecret(path)
		if err != nil {
			l.complain(from, "%v", err)
			l.bad[s.Name] = true
			continue
		}
		l.values[s.Name] = secret
		if l.settings.files == nil {
			l.settings.files = map[string]string{}
		}
		l.settings.files[s.Name] = path
	}
}

func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("the file cannot be read (%w)", bare(err))
	case info.IsDir():
		return "", errors.New("is a directory, not a file")
	case info.Size() > maxSecretFile:
		return "", fmt.Errorf("the file has %d bytes; a secret has at most %d", info.Size(), maxSecretFile)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read (%w)", bare(err))
	}
	secret := strings.TrimRight(string(content), "\r\n")
	if secret == "" {
		return "", errors.New("the file is empty")
	}
	return secret, nil
}

// bare takes the path off a file's error: a secret may have been put where a path belongs.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Variables that Kubernetes sets in every pod beside a Service whose name begins with docket.
var serviceLink = regexp.MustCompile(`^DOCKET_(.*_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknown refuses variables that are a slip of the pen away from a setting, as they would be ignored without a word.
// Others that begin like ours may be somebody else's (a Service link, a newer release's setting after a roll-back), so
// they get a warning.
func (l *loader) unknown() {
	names, foreign := []string{}, map[string]bool{}
	for _, s := range Table() {
		names = append(names, s.Name)
		if s.Secret {
			names = append(names, s.Name+fileSuffix)
		}
		if !s.Of(l.program) {
			foreign[s.Name], foreign[s.Name+fileSuffix] = true, true
		}
	}
	given := []string{}
	for name := range l.values {
		if !slices.Contains(names, name) && !serviceLink.MatchString(name) {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	for _, name := range given {
		base, isFile := strings.CutSuffix(name, fileSuffix)
		switch near := Nearest(name, names); {
		case isFile && slices.Contains(names, base):
			l.complain(name, "only a secret can come from a file; set %s itself", base)
		case near != "" && distance(name, near) <= 2 && !foreign[near]:
			l.complain(name, "there is no such setting; did you mean %s?", near)
		case near != "":
			l.warnings = append(l.warnings, Complaint{name, "there is no such setting; did you mean " + near + "?"})
		default:
			l.warnings = append(l.warnings, Complaint{name, "there is no such setting; check its spelling, or remove it"})
		}
	}
}

// defaults drops variables that are set but empty, as Compose files leave them behind, so that they get their default. It
// also fills in the defaults that differ from program to program.
func (l *loader) defaults() {
	for _, s := range Table() {
		v, given := l.values[s.Name]
		if given && v == "" && !s.keepNull {
			delete(l.values, s.Name)
			given = false
		}
		if d := s.Default(l.program); !given && d != "" && s.Of(l.program) {
			l.values[s.Name] = d
		}
	}
}

func (l *loader) parse() {
	err := env.ParseWithOptions(&l.settings, env.Options{Environment: l.values, FuncMap: parsers})
	var all env.AggregateError
	if !errors.As(err, &all) {
		return
	}
	table := Table()
	for _, one := range all.Errors {
		var p env.ParseError
		if !errors.As(one, &p) {
			// Only a mistake in the struct's tags gets here, and every test would show it.
			panic(one)
		}
		i := slices.IndexFunc(table, func(s Setting) bool { return s.field == p.Name })
		s := table[i]
		l.complain(s.Name, "%s %v%s", quote(l.values[s.Name]), p.Err, s.advice(l.program))
	}
}

var parsers = map[reflect.Type]env.ParserFunc{
	reflect.TypeFor[Secret]():          func(v string) (any, error) { return Secret(v), nil },
	reflect.TypeFor[Size]():            func(v string) (any, error) { return ParseSize(v) },
	reflect.TypeFor[time.Duration]():   func(v string) (any, error) { return parseDuration(v) },
	reflect.TypeFor[[]time.Duration](): func(v string) (any, error) { return parseDurations(v) },
	reflect.TypeFor[[]string]():        func(v string) (any, error) { return list(v), nil },
	reflect.TypeFor[int]():             func(v string) (any, error) { return parseWhole(v) },
	reflect.TypeFor[bool]():            func(v string) (any, error) { return parseBool(v) },
}

// quote shows the value of a setting that is not a secret, short and on one line.
func quote(v string) string {
	const most = 40
	if len(v) > most {
		v = v[:most] + "..."
	}
	return strconv.QuoteToASCII(v)
}

// advice is what would be right, as the end of a complaint.
func (s Setting) advice(p Program) string {
	text := ""
	if r := s.Range(); r != "" {
		text = "; allowed: " + r
	}
	if d := s.Default(p); d != "" {
		text += "; default: " + d
	}
	return text
}

// ranges holds every setting against its range and its choices.
func (l *loader) ranges() {
	v := reflect.ValueOf(l.settings)
	for _, s := range Table() {
		if !l.fine(s.Name) {
			continue
		}
		text := l.values[s.Name]
		if len(s.OneOf) > 0 && text != "" && !slices.Contains(s.OneOf, text) {
			l.complain(s.Name, "%s is not a choice%s", quote(text), s.advice(l.program))
		}
		if s.Min != "" && !s.within(v.FieldByName(s.field).Interface()) {
			l.complain(s.Name, "%s is out of range%s", quote(text), s.advice(l.program))
		}
	}
}

func (s Setting) within(value any) bool {
	switch v := value.(type) {
	case int:
		return v >= must(parseWhole(s.Min)) && v <= must(parseWhole(s.Max))
	case Size:
		return v >= must(ParseSize(s.Min)) && v <= must(ParseSize(s.Max))
	case time.Duration:
		return v >= must(parseDuration(s.Min)) && v <= must(parseDuration(s.Max))
	case []time.Duration:
		return !slices.ContainsFunc(v, func(d time.Duration) bool { return !s.within(d) })
	}
	panic("config: " + s.Name + " has a range, but no order")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (l *loader) missing() {
	for _, s := range Table() {
		if s.Required && !l.without[s.Name] && l.fine(s.Name) && l.values[s.Name] == "" && !l.databaseElsewhere(s.Name) {
			l.complain(s.Name, "is required (or %s with the path of a file that contains it)", s.Name+fileSuffix)
		}
	}
}

// judge has those who know what a setting means look at it.
func (l *loader) judge() {
	for _, s := range Table() {
		judge, text := l.judges[s.Name], l.values[s.Name]
		if judge == nil || text == "" || !l.fine(s.Name) {
			continue
		}
		if wrong := judge(text); wrong != "" {
			l.complain(s.Name, "%s", wrong)
		}
	}
}
