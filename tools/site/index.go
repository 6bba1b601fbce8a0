package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// searchIndex is what the search in the browser reads. search.js says how.
type searchIndex struct {
	Pages    []string `json:"pages"`    // address and title of each page, with a tab between
	Sections [][3]any `json:"sections"` // number of the page, id of the heading with its text after a tab, first words
	Words    string   `json:"words"`    // all words in order, with spaces between
	Posts    string   `json:"posts"`    // the sections of each word: differences in base 36, with ' where a row of a table is about it; lists end with a comma
}

// word is a word of a text in lower case: Latin letters, digits and underscores. search.js has the same rule.
var word = regexp.MustCompile(`[0-9a-z_\x{c0}-\x{24f}]+`)

const (
	longestWord = 48  // bytes
	excerpt     = 150 // letters of the first words of a section
)

// common are words that are in nearly every section, so that nobody finds anything by them.
var common = map[string]bool{"the": true, "and": true, "of": true, "to": true, "in": true, "is": true, "it": true, "an": true, "are": true, "for": true, "that": true, "by": true, "or": true, "with": true, "as": true, "be": true, "on": true, "at": true}

// index makes the search index of pages, in JSON.
func index(docs []document) ([]byte, error) {
	x := searchIndex{}
	posts := map[string][]post{}
	for p, d := range docs {
		x.Pages = append(x.Pages, htmlOf(d.source)+"\t"+d.title)
		for i, h := range d.headings {
			id := h.id
			if i == 0 {
				id = "" // the top of the page
			}
			n := len(x.Sections)
			x.Sections = append(x.Sections, [3]any{p, id + "\t" + h.text, shortened(h.detail)})
			keys := words(h.keys)
			for w := range words(h.text + " " + h.detail) {
				posts[w] = append(posts[w], post{n, keys[w]})
			}
		}
	}
	all := slices.Sorted(maps.Keys(posts))
	x.Words, x.Posts = strings.Join(all, " "), postsText(all, posts)
	text, err := json.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("write the search index: %w", err)
	}
	return text, nil
}

// post is a section that has a word.
type post struct {
	section int
	key     bool // a row of a table is about the word
}

func postsText(all []string, posts map[string][]post) string {
	var b strings.Builder
	for _, w := range all {
		before := 0
		for i, at := range posts[w] {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.FormatInt(int64(at.section-before), 36))
			if at.key {
				b.WriteByte('\'')
			}
			before = at.section
		}
		b.WriteByte(',')
	}
	return b.String()
}

// words returns the words of a text once each. A name like docket_hold is found whole and by its parts.
func words(text string) map[string]bool {
	all := map[string]bool{}
	add := func(w string) {
		if utf8.RuneCountInString(w) > 1 && len(w) <= longestWord && !common[w] {
			all[w] = true
		}
	}
	for _, w := range word.FindAllString(strings.ToLower(text), -1) {
		w = strings.Trim(w, "_")
		add(w)
		if strings.Contains(w, "_") {
			for _, part := range strings.Split(w, "_") {
				add(part)
			}
		}
	}
	return all
}

// shortened returns the first words of a text.
func shortened(text string) string {
	if utf8.RuneCountInString(text) <= excerpt {
		return text
	}
	cut := string([]rune(text)[:excerpt])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut + " …"
}
