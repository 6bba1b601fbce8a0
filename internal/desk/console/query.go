package console

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
)

// search is what the page of decisions asks. It is in the URL, so that back, forward and a bookmark ask the same.
type search struct {
	Verdict, Path, Service, RequestedBy, Label, Match []string
	Since, Until, Order, After, Before                string
}

// Limits of the API's document.
const (
	maxValues = 20
	maxCursor = 8192
	maxTime   = 40
)

// many are the fields that may be repeated, by their names in the URL and in the search line.
func (s *search) many() []struct {
	name string
	to   *[]string
} {
	return []struct {
		name string
		to   *[]string
	}{{"verdict", &s.Verdict}, {"path", &s.Path}, {"service", &s.Service}, {"requested_by", &s.RequestedBy}, {"label", &s.Label}, {"match", &s.Match}}
}

// one are the fields that are there once.
func (s *search) one() []struct {
	name string
	to   *string
} {
	return []struct {
		name string
		to   *string
	}{{"since", &s.Since}, {"until", &s.Until}, {"order", &s.Order}, {"after", &s.After}, {"before", &s.Before}}
}

// placeNames are the fields that choose a page. They are in the URL and in no search line.
var placeNames = map[string]bool{"after": true, "before": true}

// searchOf reads a search from a URL. Values are joined by and, those of one field by or.
func searchOf(q url.Values) (search, error) {
	var s search
	for _, f := range s.many() {
		for _, v := range q[f.name] {
			if v = strings.TrimSpace(v); v != "" {
				*f.to = append(*f.to, v)
			}
		}
	}
	for _, f := range s.one() {
		*f.to = strings.TrimSpace(q.Get(f.name))
	}
	return s, s.check()
}

func (s *search) check() error {
	for _, f := range s.many() {
		if len(*f.to) > maxValues {
			return asking(f.name, "at most 20 values")
		}
	}
	for i, v := range s.Verdict {
		verdict, err := reader.ParseVerdict(v)
		if err != nil {
			return asking("verdict", err.Error())
		}
		s.Verdict[i] = string(verdict)
	}
	if s.Order != "" && s.Order != "newest" && s.Order != "oldest" {
		return asking("order", "newest or oldest")
	}
	if len(s.After) > maxCursor || len(s.Before) > maxCursor || len(s.Since) > maxTime || len(s.Until) > maxTime {
		return asking("since, until, after", "a shorter text")
	}
	if s.After != "" && s.Before != "" {
		return asking("after, before", "one of them")
	}
	return nil
}

// parseLine reads a search line: name:value, by spaces. A value with spaces is in quotes. The names input:, result: and raw:
// ask what a payload holds.
func parseLine(text string) (search, error) {
	var s search
	for _, word := range words(text) {
		name, value, cut := strings.Cut(word, ":")
		whole, _, _ := strings.Cut(name, "=") // input=1
		if whole == "input" || whole == "result" || whole == "raw" {
			s.Match = append(s.Match, word) // its value is JSON, and a quoted text is a JSON string
			continue
		}
		if !cut || value == "" {
			return s, asking("q", "words like verdict:denied, path:authz/*, since:2h or input:/user=alice; this one is none: "+word)
		}
		if !s.set(strings.ReplaceAll(name, "-", "_"), unquote(value)) {
			return s, asking("q", "verdict, path, service, requested_by, label, input, result, raw, since, until or order; there is no "+name)
		}
	}
	return s, s.check()
}

func (s *search) set(name, value string) bool {
	for _, f := range s.many() {
		if f.name == name {
			*f.to = append(*f.to, value)
			return true
		}
	}
	for _, f := range s.one() {
		if f.name == name && !placeNames[name] {
			*f.to = value
			return true
		}
	}
	return false
}

// words cuts a line at spaces outside of quotes. Inside, a backslash escapes a quote and a backslash.
func words(text string) (all []string) {
	quoted, from := false, -1
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == ' ' && !quoted {
			if from >= 0 {
				all = append(all, text[from:i])
			}
			from = -1
			continue
		}
		if from < 0 {
			from = i
		}
		switch {
		case c == '"':
			quoted = !quoted
		case quoted && escapes(text, i):
			i++
		}
	}
	if from >= 0 {
		all = append(all, text[from:])
	}
	return all
}

// escapes reports whether a backslash is there that escapes what follows.
func escapes(text string, i int) bool {
	return text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\')
}

// unquote takes a value out of its quotes, if it is in them as a whole.
func unquote(text string) string {
	if len(text) < 2 || text[0] != '"' {
		return text
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"' && i == len(text)-1:
			return b.String()
		case text[i] == '"':
			return text
		case escapes(text, i):
			i++
		}
		b.WriteByte(text[i])
	}
	return text
}

// alone reports whether a value is one word of a line, whatever follows it.
func alone(v string) bool {
	all := words(v + " x")
	return len(all) == 2 && all[0] == v
}

// line is the search as a search line.
func (s *search) line() string {
	var all []string
	for _, f := range s.many() {
		for _, v := range *f.to {
			if f.name == "match" {
				all = append(all, quotedMatch(v))
				continue
			}
			all = append(all, f.name+":"+quoted(v))
		}
	}
	for _, f := range s.one() {
		if *f.to != "" && !placeNames[f.name] {
			all = append(all, f.name+":"+quoted(*f.to))
		}
	}
	return strings.Join(all, " ")
}

// quotedMatch writes a match as one word that means the same.
func quotedMatch(v string) string {
	m, err := reader.ParseMatch(v)
	if alone(v) || err != nil {
		return v
	}
	text := m.In
	if m.Pointer != "" {
		text += ":" + m.Pointer
		if strings.ContainsAny(m.Pointer, `" =`) {
			text = m.In + ":" + jsonText(m.Pointer)
		}
	}
	if m.Value == nil {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, m.Value) != nil {
		return v
	}
	return text + "=" + b.String()
}

func jsonText(v string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it never fails
	return strings.TrimSuffix(b.String(), "\n")
}

func quoted(v string) string {
	if alone(v) && unquote(v) == v {
		return v
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}

// values is the search as a query of a URL.
func (s *search) values() url.Values {
	q := url.Values{}
	for _, f := range s.many() {
		if len(*f.to) > 0 {
			q[f.name] = *f.to
		}
	}
	for _, f := range s.one() {
		if *f.to != "" {
			q.Set(f.name, *f.to)
		}
	}
	return q
}

// with is the URL of the page with other values; an empty one removes the field.
func (s *search) with(pairs ...string) string {
	q := s.values()
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return decisionsURL(q)
}

// first is the URL of the first page with other values.
func (s *search) first(pairs ...string) string {
	return s.with(append([]string{"after", "", "before", ""}, pairs...)...)
}

// turned is the URL of the first page with a value of a repeated field more, or without it where it is there.
func (s *search) turned(name, value string) (to string, was bool) {
	q := s.values()
	values := slices.Clone(q[name])
	if at := slices.Index(values, value); at >= 0 {
		values, was = slices.Delete(values, at, at+1), true
	} else {
		values = append(values, value)
	}
	if q[name] = values; len(values) == 0 {
		q.Del(name)
	}
	q.Del("after")
	q.Del("before")
	return decisionsURL(q), was
}

func decisionsURL(q url.Values) string {
	if len(q) == 0 {
		return "/decisions"
	}
	return "/decisions?" + q.Encode()
}

// lasting is the URL of the same range as times, so that it asks the same on another day. Without a since it is empty.
func (s *search) lasting(now time.Time) string {
	if s.Since == "" {
		return ""
	}
	since, until := s.between(now)
	return s.first("since", since.UTC().Format(time.RFC3339), "until", until.UTC().Format(time.RFC3339))
}

// settle makes the range one of times, as words like 1h mean another one later. The API refuses other texts.
func (s *search) settle(now time.Time) {
	for _, text := range []*string{&s.Since, &s.Until} {
		if at, err := reader.ParseTime(*text, now); *text != "" && err == nil {
			*text = at.UTC().Format(time.RFC3339Nano)
		}
	}
}

// question is the search as a question of the API.
func (s *search) question(limit int) api.SearchQuery {
	q := api.SearchQuery{After: s.After, Limit: limit, Order: s.Order}
	q.Since, q.Until, q.Path, q.Service = s.Since, s.Until, s.Path, s.Service
	q.RequestedBy, q.Label, q.Match = s.RequestedBy, s.Label, s.Match
	for _, v := range s.Verdict {
		q.Verdict = append(q.Verdict, reader.Verdict(v))
	}
	return q
}

// commandLine is the same search on the command line.
func (s *search) commandLine() string {
	all := []string{"docket logs"}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				all = append(all, "--"+flag+" "+shellQuoted(v))
			}
		}
	}
	add("since", s.Since)
	add("until", s.Until)
	add("verdict", s.Verdict...)
	add("path", s.Path...)
	add("service", s.Service...)
	add("requested-by", s.RequestedBy...)
	add("label", s.Label...)
	add("match", s.Match...)
	if s.Order == "oldest" {
		all = append(all, "--oldest")
	}
	return strings.Join(all, " ")
}

// shellQuoted is one word of a POSIX shell.
func shellQuoted(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._/:=@,+", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Has reports whether a verdict is chosen.
func (s search) Has(v string) bool { return slices.Contains(s.Verdict, v) }

// between are the ends of the range, as far as they can be read. Without a since it is the last day.
func (s *search) between(now time.Time) (since, until time.Time) {
	until = now
	if at, err := reader.ParseTime(s.Until, now); s.Until != "" && err == nil {
		until = at
	}
	since = until.Add(-24 * time.Hour)
	if at, err := reader.ParseTime(s.Since, now); s.Since != "" && err == nil {
		since = at
	}
	return since, until
}
