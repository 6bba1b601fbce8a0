package console

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

//go:embed templates/*.html
var templateFiles embed.FS

// page is the answer of a screen: a template with its content, or a place to go to.
type page struct {
	name, title string
	status      int // 0: 200
	body        any
	part        string // the template that a refresh gets
	to          string // redirect there
	cookie      *http.Cookie
	also        *http.Cookie // another one
	refresh     string       // where the browser continues by itself
	silent      bool         // no content
	after       string       // Retry-After, in seconds
	raw         []byte       // a file, with its type
	zipped      []byte       // the same file, by gzip
	kind        string
	send        func(w http.ResponseWriter) // writes the answer by itself
	at          time.Time                   // of what it shows; zero: of the request
	stream      *stream                     // in place of all others
}

// frame is what every template gets.
type frame struct {
	Title, Section string
	Name, Role     string
	Logged         bool // by a session, which can be ended
	Has            map[string]bool
	Reads          bool // the role sees payloads
	Decides        bool // the role changes dead letters
	At             time.Time
	Version        string
	Range          string // of time, as a query; a link to another page of decisions keeps it
	Body           any
}

// pages are the parsed templates by name.
type pages map[string]*template.Template

var pageNames = []string{"login", "problem", "now", "decisions", "why", "columns", "compare", "rates", "flips", "subject", "where", "letters", "group", "dryrun", "letter", "job", "signin", "audit", "archive", "lanes", "check", "count", "edit", "proposal"}

// files are what the program contains for browsers, ready for use.
type files struct {
	assets assets
	pages  pages
}

// embedded reads them once, however many consoles a process has.
var embedded = sync.OnceValues(func() (files, error) {
	a, err := readAssets()
	if err != nil {
		return files{}, err
	}
	p, err := readPages(a)
	return files{a, p}, err
})

func readPages(a assets) (pages, error) {
	base, err := template.New("layout").Funcs(functions(a)).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/tail.html")
	if err != nil {
		return nil, fmt.Errorf("parse the console's layout: %w", err)
	}
	all := pages{}
	for _, name := range pageNames {
		one, err := base.Clone()
		if err == nil {
			one, err = one.ParseFS(templateFiles, "templates/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("parse the console's page %s: %w", name, err)
		}
		all[name] = one
	}
	return all, nil
}

// publicWithin is how long anybody without a login may take for an answer.
const publicWithin = 10 * time.Second

// write answers with a page. It is rendered whole before its first byte is sent.
func (c *Console) write(w http.ResponseWriter, in *request, p page) {
	if in.public {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(publicWithin)) // a writer of a test has none
	}
	if p.cookie != nil {
		http.SetCookie(w, p.cookie)
	}
	if p.also != nil {
		http.SetCookie(w, p.also)
	}
	if p.refresh != "" {
		w.Header().Set("Refresh", "0; url="+p.refresh)
	}
	if p.after != "" {
		w.Header().Set("Retry-After", p.after)
	}
	switch {
	case p.silent:
		w.WriteHeader(max(p.status, http.StatusOK))
		return
	case p.raw != nil:
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("Content-Type", p.kind)
		w.Header().Set("Vary", "Accept-Encoding")
		text := p.raw
		if takesGzip(in.Header) {
			text = p.zipped
			w.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = w.Write(text) // the client is gone
		return
	case p.send != nil:
		p.send(w)
		return
	case p.to != "":
		http.Redirect(w, in.Request, p.to, http.StatusSeeOther)
		return
	}
	f := c.frame(in, p)
	name := "layout"
	if part(in.Request) && p.part != "" {
		name = p.part
	}
	var out bytes.Buffer
	if err := c.pages[p.name].ExecuteTemplate(&out, name, f); err != nil {
		panic(fmt.Errorf("render %s: %w", p.name, err)) // it depends on the types alone; the guard answers
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(max(p.status, http.StatusOK))
	_, _ = w.Write(visible(out.Bytes())) // the client is gone
}

// rangeOf is the range of time of a page as a query, empty where it has none.
func rangeOf(q url.Values) string {
	kept := url.Values{}
	for _, name := range []string{"since", "until"} {
		if v := q.Get(name); v != "" && len(v) <= maxTime {
			kept.Set(name, v)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return "?" + kept.Encode()
}

// frame is what the template of a page gets.
func (c *Console) frame(in *request, p page) frame {
	f := frame{Title: p.title, Section: strings.SplitN(strings.TrimPrefix(in.URL.Path, "/"), "/", 2)[0], Name: in.who.Name, Role: in.who.Role.String(), Logged: in.logged,
		Has: map[string]bool{}, Reads: in.who.Role >= api.Auditor, Decides: in.who.Role >= api.Operator, At: in.now.UTC(), Version: c.Version, Range: rangeOf(in.URL.Query()), Body: p.body}
	if !p.at.IsZero() {
		f.At = p.at.UTC()
	}
	for _, one := range c.screens {
		f.Has[one.pattern] = one.public || in.who.Role >= one.role && one.role != api.Nobody
	}
	return f
}

// problemPage is an error for a reader.
type problemPage struct {
	Heading, Detail, Hint string
	Faults                []api.Fault
	Elsewhere             *api.Elsewhere
	Completeness          *reader.Completeness
	Retry                 bool // the address can be asked again
	Back                  bool // the form is behind the browser's button
}

// fail answers with an error. It logs faults of the desk.
func (c *Console) fail(w http.ResponseWriter, in *request, err error) {
	var p *api.Problem
	var store *storeError
	out := problemPage{Heading: "Something went wrong", Detail: "The desk could not answer.", Hint: "Look at the desk's log, then try again."}
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, &p):
		status = p.Status
		out = problemPage{Heading: headings[p.Status], Detail: sentence(p.Detail), Hint: hintOf(p), Faults: p.Faults, Elsewhere: p.Elsewhere, Completeness: p.Completeness}
		if out.Heading == "" {
			out.Heading = http.StatusText(status)
		}
		if after := p.GetHeaders().Get("Retry-After"); after != "" {
			w.Header().Set("Retry-After", after)
		}
	case errors.As(err, &store):
		status = http.StatusServiceUnavailable
		out.Heading, out.Detail, out.Hint = "The database does not answer", "Sessions are kept there, so the desk cannot tell who you are.", "You stay logged in. Try again in a moment."
		c.log.Warn().Err(err).Str("hint", "check the database; where desk_sessions is missing, run docket migrate").Msg("console sessions not reachable")
	default:
		c.log.Error().Type("error", err).Str("route", in.Pattern).Msg("console request failed")
	}
	if background(in.Request) {
		http.Error(w, "not now", status)
		return
	}
	if status >= http.StatusInternalServerError {
		out.Retry, out.Back = in.Method == http.MethodGet, in.Method != http.MethodGet
	}
	c.write(w, in, page{name: "problem", title: out.Heading, status: status, body: out})
}

var headings = map[int]string{
	http.StatusNotFound: "Not found", http.StatusForbidden: "Not allowed", http.StatusConflict: "It was not changed",
	http.StatusServiceUnavailable: "Not available just now", http.StatusUnprocessableEntity: "This cannot be asked", http.StatusBadRequest: "This cannot be asked",
}

// hintOf is the hint of a problem for a reader of pages. One that names an address of the API is for programs.
func hintOf(p *api.Problem) string {
	if strings.Contains(p.Hint, api.Prefix) {
		return ""
	}
	return sentence(p.Hint)
}

// sentence makes a detail of the API a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// asking is a problem of what a person typed.
func asking(field, message string) *api.Problem {
	return &api.Problem{Status: http.StatusUnprocessableEntity, Detail: "The question cannot be read.", Hint: "Correct it and ask again.", Faults: []api.Fault{{Location: field, Message: message}}}
}

// decisionURL is the page of a decision. At zero it shows the newest of that id.
func decisionURL(id string, at time.Time) string {
	q := url.Values{}
	if !at.IsZero() {
		q.Set("timestamp", escape.Instant(at))
	}
	return namedURL("/decisions", "id", id, q)
}

// namedURL is the page of a thing with a name. Browsers take the names . and .. for ways in the path, and [http.ServeMux] takes
// / for the end of one. So these are in the query.
func namedURL(pages, param, name string, q url.Values) string {
	if name == "." || name == ".." || name == "/" {
		q.Set(param, name)
		return pages + "?" + q.Encode()
	}
	pages += "/" + url.PathEscape(name)
	if len(q) == 0 {
		return pages
	}
	return pages + "?" + q.Encode()
}

// named is the name in the path of a page, or the one in its query.
func (in *request) named(param string) string {
	if name := in.PathValue(param); name != "" {
		return name
	}
	return in.URL.Query().Get(param)
}
