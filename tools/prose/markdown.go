package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	inline  = regexp.MustCompile("``[^`]+``|`[^`\n]*`")
	image   = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	address = regexp.MustCompile(`<?https?://\S+`)
	tag     = regexp.MustCompile(`</?[a-zA-Z][^>]*>`)
	item    = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s+`)
	ruler   = regexp.MustCompile(`^[\s|:-]+$`)
)

// plain takes code, addresses and marks out of a text that may span lines.
func plain(text string) string {
	text = inline.ReplaceAllString(text, code)
	text = image.ReplaceAllString(text, "")
	text = link.ReplaceAllString(text, "$1")
	text = address.ReplaceAllString(text, code)
	text = tag.ReplaceAllString(text, "")
	return strings.NewReplacer("**", "", "*", "", `\|`, "/").Replace(text)
}

// markdown checks a page: its sentences, and the width of its lines.
func markdown(file, text string) []Finding {
	var found []Finding
	var open block
	flush := func() {
		if len(open.lines) > 0 {
			joined := plain(strings.Join(open.lines, "\n"))
			found = append(found, check(file, block{strings.Split(joined, "\n"), open.first, open.heading})...)
		}
		open = block{}
	}
	lines := strings.Split(text, "\n")
	fence, comment := "", false
	for i, line := range lines {
		number, trimmed := i+1, strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			continue
		case comment:
			comment = !strings.Contains(line, "-->")
			continue
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			flush()
			fence = trimmed[:3]
			continue
		case strings.HasPrefix(trimmed, "<!--"):
			flush()
			comment = !strings.Contains(line, "-->")
			continue
		case trimmed == "":
			flush()
			continue
		case strings.HasPrefix(trimmed, "|"):
			flush()
			header := i+1 < len(lines) && ruler.MatchString(lines[i+1]) && strings.Contains(lines[i+1], "-")
			if !ruler.MatchString(trimmed) {
				found = append(found, row(file, trimmed, number, header)...)
			}
			continue
		case strings.HasPrefix(trimmed, "#"):
			flush()
			open = block{[]string{strings.TrimLeft(trimmed, "# ")}, number, true}
			flush()
			continue
		case strings.HasPrefix(trimmed, "[") && strings.Contains(trimmed, "]: "):
			flush()
			continue
		}
		if mark := item.FindString(line); mark != "" {
			flush()
			line = line[len(mark):]
		}
		if n := utf8.RuneCountInString(lines[i]); n > maxColumns && breakable(line) {
			found = append(found, Finding{file, number, fmt.Sprintf("%d columns, at most %d", n, maxColumns), sentence{text: trimmed}.shown()})
		}
		if len(open.lines) == 0 {
			open.first = number
		}
		open.lines = append(open.lines, strings.TrimPrefix(strings.TrimSpace(line), "> "))
	}
	flush()
	return found
}

// breakable says whether a line has a space to break it at that is outside code and links.
func breakable(line string) bool {
	line = image.ReplaceAllString(line, "")
	whole := func(s string) string { return strings.ReplaceAll(s, " ", "_") }
	line = link.ReplaceAllStringFunc(inline.ReplaceAllStringFunc(strings.TrimSpace(line), whole), whole)
	return strings.Contains(line, " ")
}

// row checks the cells of a row of a table. The header may hold questions.
func row(file, line string, number int, header bool) []Finding {
	line = inline.ReplaceAllString(line, code)
	line = strings.ReplaceAll(line, `\|`, "/")
	var found []Finding
	for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
		for _, part := range strings.Split(plain(cell), "; ") { // a cell may be a list
			found = append(found, check(file, block{[]string{strings.TrimSpace(part)}, number, header})...)
		}
	}
	return found
}

// unreleased keeps the lines of the changelog up to the first release, so that numbers of lines hold.
func unreleased(text string) string {
	at := strings.Index(text, "\n## [Unreleased]")
	if at < 0 {
		return ""
	}
	head := strings.Repeat("\n", strings.Count(text[:at], "\n"))
	text = text[at:]
	if end := strings.Index(text[len("\n## [Unreleased]"):], "\n## ["); end >= 0 {
		text = text[:len("\n## [Unreleased]")+end]
	}
	return head + text
}
