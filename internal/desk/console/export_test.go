package console

import (
	"html/template"
	"net/url"
	"strings"
	"time"

	"docket/internal/desk/api"
)

// PublicRoutes is the number of routes without a login, and OpenIDRoutes that of further ones with [OpenID].
const (
	PublicRoutes = 3
	OpenIDRoutes = 3
)

// Patterns are the patterns of all routes.
func Patterns(c *Console) (all []string) {
	for pattern := range c.screens {
		all = append(all, pattern)
	}
	return all
}

// FillLive takes all places of refreshing requests.
func FillLive(c *Console) (leave func()) {
	for range cap(c.live) {
		c.live <- struct{}{}
	}
	return func() {
		for range cap(c.live) {
			<-c.live
		}
	}
}

// PublicInUse is the number of requests to routes without a login.
func PublicInUse(c *Console) int { return len(c.public) }

// LiveInUse is the number of taken places.
func LiveInUse(c *Console) int { return len(c.live) }

// Break has a page panic.
func Break(c *Console, name string) {
	c.pages[name] = template.Must(template.New("layout").Funcs(template.FuncMap{"fail": func() string { panic("planted-personal-data") }}).Parse(`{{fail}}`))
}

// AssetURL is the address of a file.
func AssetURL(c *Console, name string) string { return c.assets.url(name) }

// Internals for tests.
var (
	LocalPath  = localPath
	ShellQuote = shellQuoted
	Visible    = visible
	MaxNodes   = maxNodes
)

// Tree renders JSON as a page does.
func Tree(raw []byte, badges map[string]string) (lines []string, more string, largest int) {
	t := treeOf(raw, "", badges)
	for _, l := range t.Lines {
		lines = append(lines, l.Name+"|"+l.Value+"|"+l.Cut+"|"+l.Badge)
		largest = max(largest, len(l.Value), len(l.Name))
	}
	return lines, t.More, largest
}

// Line reads a search line and writes it again, with the URL and the command line.
func Line(text string) (line, to, command string, err error) {
	s, err := parseLine(text)
	return s.line(), s.with(), s.commandLine(), err
}

// LineOf is the search line of a query.
func LineOf(q url.Values) (string, error) {
	s, err := searchOf(q)
	return s.line(), err
}

// ShownPayload reports whether a payload is shown as a tree, and else its text.
func ShownPayload(raw string) (tree bool, text string) {
	v := payloadOf(api.Payload{Value: api.Bytes{Text: &raw}})
	return v.Tree != nil, v.Text
}

// Defused is a cell of CSV.
var Defused = defused

// FillExports takes all places of exports.
func FillExports(c *Console) (leave func()) {
	for range cap(c.exporting) {
		c.exporting <- struct{}{}
	}
	return func() {
		for range cap(c.exporting) {
			<-c.exporting
		}
	}
}

// StreamsInUse is the number of open streams.
func StreamsInUse(c *Console) int {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	return len(c.streams.free) + len(c.streams.of)
}

// Places are those of the first page, for an answer about now of an age.
func Places(a api.NowAnswer, at time.Time, age time.Duration) (all map[string]string, said string) {
	p := nowView(&snapshot{at: at, now: &a, nowAt: at.Add(-age)}, Sight{})
	all = map[string]string{}
	for _, one := range append(p.Way, p.Sides...) {
		all[one.Name] = strings.Join([]string{one.Number, one.Tone, one.Text}, "|")
	}
	return all, string(p.Fresh)
}

// Rechecks reports whether streams were asked to look for their session.
func Rechecks(c *Console) (asked func() bool) {
	again := c.streams.asked()
	return func() bool {
		select {
		case <-again:
			return true
		default:
			return false
		}
	}
}
