package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxWords   = 25  // of a sentence
	maxColumns = 100 // of a line of prose
	maxSubject = 72  // letters of a commit's subject
	maxLogLine = 8   // words of a log line
)

// code stands for what is not English: text in backticks, a placeholder, a template.
const code = "\uFFFC"

var (
	opening = regexp.MustCompile(`(?i)^(what|who|whoever|that which|of which|each of which)\b`)
	banned  = []struct {
		phrase string
		is     *regexp.Regexp
	}{
		{"is no", regexp.MustCompile(`(?i)\bis no (\w+)`)},
		{"anew", regexp.MustCompile(`(?i)\banew\b`)},
		{"for ...'s sake", regexp.MustCompile(`(?i)\bfor (the sake of|\S+('s|s'|’s) (own )?sake)\b`)},
		{"goes on", regexp.MustCompile(`(?i)\b(go|goes|going|went|gone) on\b`)},
		{"stands", regexp.MustCompile(`(?i)\b(?:stand still|stood still|stands)\b( for\b| in for\b)?`)},
		{"lies", regexp.MustCompile(`(?i)\blies\b`)},
		{"mend", regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`)},
		{"wants a row", regexp.MustCompile(`(?i)\bwants? a row\b`)},
		{"of ours", regexp.MustCompile(`(?i)\bof ours\b`)},
	}
	// comparison are words that make plain English of "is no".
	comparison = map[string]bool{"longer": true, "more": true, "less": true, "better": true, "worse": true, "faster": true, "slower": true, "larger": true, "smaller": true, "different": true}
	// codes is a list of names in backticks, which counts as one word.
	codes = regexp.MustCompile(code + `(\s*(,|/|\+|and|or|, and|, or)\s*` + code + `)+`)
	// numbers is a list of figures, which counts as one word.
	numbers = regexp.MustCompile(`\d[\d.,:]*(,? (and |or |to )?\d[\d.,:]*)+`)
)

// A block is text that is read in one go: a paragraph, an item of a list, a cell.
type block struct {
	lines   []string
	first   int  // number of the first line
	heading bool // a heading may begin with a question word
}

// check applies the rules for sentences to a block whose code is taken out already.
func check(file string, b block) []Finding {
	var found []Finding
	for _, s := range sentences(b) {
		if !b.heading && opening.MatchString(s.text) && !strings.HasSuffix(s.text, "?") {
			found = append(found, Finding{file, s.line, "opening", s.shown()})
		}
		if phrase := bannedPhrase(s.text); phrase != "" {
			found = append(found, Finding{file, s.line, fmt.Sprintf("banned phrase %q", phrase), s.shown()})
		}
		if n := words(s.text); n > maxWords {
			found = append(found, Finding{file, s.line, fmt.Sprintf("%d words, at most %d", n, maxWords), s.shown()})
		}
	}
	return found
}

// bannedPhrase returns the banned phrase in text, or "". "There is no row" and "is
// no longer" are plain English, and so is "stands for".
func bannedPhrase(text string) string {
	for _, b := range banned {
		for _, at := range b.is.FindAllStringSubmatchIndex(text, -1) {
			switch b.phrase {
			case "is no":
				before, next := strings.ToLower(text[:at[0]]), strings.ToLower(text[at[2]:at[3]])
				if strings.HasSuffix(before, "there ") || comparison[next] {
					continue
				}
			case "stands":
				if at[2] >= 0 {
					continue
				}
			}
			return b.phrase
		}
	}
	return ""
}

// A sentence is text with the line that it begins on.
type sentence struct {
	text string
	line int
}

// shown shortens a sentence for the report.
func (s sentence) shown() string {
	text := strings.ReplaceAll(s.text, code, "`…`")
	const most = 90
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// sentences splits a block. A sentence ends at a full stop, a question mark or an
// exclamation mark before a capital or a name, and at a colon: a list may follow it.
func sentences(b block) []sentence {
	text := strings.Join(b.lines, "\n")
	var all []sentence
	line, begin := b.first, 0
	add := func(end int) {
		part := text[begin:end]
		trimmed := strings.TrimLeft(part, " \t\n")
		at := line + strings.Count(part[:len(part)-len(trimmed)], "\n")
		if trimmed = strings.TrimSpace(strings.ReplaceAll(trimmed, "\n", " ")); trimmed != "" {
			all = append(all, sentence{strings.TrimLeft(trimmed, "\"“(*_-–• "), at})
		}
		line += strings.Count(part, "\n")
		begin = end
	}
	for i, r := range text {
		if strings.ContainsRune(".!?:", r) && ends(text, i, r) {
			end := i + 1
			for end < len(text) && strings.ContainsRune("\")”*_'", rune(text[end])) {
				end++
			}
			add(end)
		}
	}
	add(len(text))
	return all
}

var short = []string{"e.g", "i.e", "vs", "etc", "approx", "cf", "no", "min", "max"}

// ends says whether the mark at i ends a sentence.
func ends(text string, i int, mark rune) bool {
	rest := strings.TrimLeft(text[i+1:], "\")”*_'")
	if rest == "" {
		return true
	}
	if rest[0] != ' ' && rest[0] != '\n' {
		return false // 0.5, a.b
	}
	if mark == ':' {
		return true
	}
	for _, s := range short {
		if mark == '.' && strings.HasSuffix(strings.ToLower(text[:i]), s) {
			if before := strings.ToLower(text[:i-len(s)]); before == "" || !unicode.IsLetter(rune(before[len(before)-1])) {
				return strings.Contains(rest, "\n\n")
			}
		}
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " \n\"“(*_"))
	return unicode.IsUpper(next) || unicode.IsDigit(next) || next == '\uFFFC' || next == '/' || next == '-'
}

// words counts words. A list of names or of figures counts as one.
func words(text string) int {
	text = codes.ReplaceAllString(text, code)
	text = numbers.ReplaceAllString(text, "0")
	n := 0
	for _, field := range strings.Fields(text) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\uFFFC' }) {
			n++
		}
	}
	return n
}
