package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"docket/internal/record/decision"
)

// Limits of a payload on a page. A payload is a stranger's: it may have 10 MB in one text, or a million names.
const (
	maxNodes  = 2000
	maxLevels = 64
	maxValue  = 2 << 10   // bytes of one text
	maxShown  = 256 << 10 // bytes of all texts
)

// treeLine is one line of a payload. It is text: nothing in it is a link, a mark or a picture.
type treeLine struct {
	Depth string // class of the indent
	Name  string // of a member, or the index in a list
	Value string
	Kind  string // class of the value
	Cut   string // how much of the value is shown; empty: all
	Badge string // masked or erased
}

// tree is a payload as lines.
type tree struct {
	Lines []treeLine
	More  string // why the rest is not shown
}

// treeOf reads JSON as it comes, and stops at a limit. Pointers in badges are into the decision; at is the pointer of
// the value itself.
func treeOf(raw []byte, at string, badges map[string]string) tree {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w := treeWriter{d: d, badges: badges}
	if err := w.value(0, "", at); err != nil && w.t.More == "" {
		w.t.More = "The rest is no JSON and is not shown."
	}
	return w.t
}

type treeWriter struct {
	d      *json.Decoder
	t      tree
	bytes  int
	badges map[string]string
}

type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func (w *treeWriter) stop(format string, args ...any) error {
	w.t.More = fmt.Sprintf(format, args...)
	return &limitError{w.t.More}
}

// value writes the next value. Its error says that no more is written.
func (w *treeWriter) value(depth int, name, at string) error {
	switch {
	case len(w.t.Lines) >= maxNodes:
		return w.stop("The first %d values are shown. docket why has all of it.", maxNodes)
	case depth > maxLevels:
		return w.stop("Levels below %d are not shown. docket why has all of it.", maxLevels)
	case w.bytes > maxShown:
		return w.stop("The first %d kB are shown. docket why has all of it.", maxShown>>10)
	}
	token, err := w.d.Token()
	if err != nil {
		return err
	}
	line := treeLine{Depth: "d" + strconv.Itoa(min(depth, 8)), Name: shown(name), Badge: w.badges[at]}
	if delim, is := token.(json.Delim); is {
		return w.inside(delim, line, depth, at)
	}
	line.Value, line.Kind, line.Cut = scalarOf(token)
	w.bytes += len(line.Value) + len(line.Name)
	w.t.Lines = append(w.t.Lines, line)
	return nil
}

// inside writes the members of an object or a list.
func (w *treeWriter) inside(open json.Delim, line treeLine, depth int, at string) error {
	if !w.d.More() {
		line.Value, line.Kind = "{}", "null"
		if open == '[' {
			line.Value = "[]"
		}
		w.t.Lines = append(w.t.Lines, line)
		_, err := w.d.Token()
		return err
	}
	child := depth
	if line.Name != "" || line.Badge != "" {
		w.t.Lines = append(w.t.Lines, line)
		child++
	}
	w.bytes += len(line.Name)
	for i := 0; w.d.More(); i++ {
		name := strconv.Itoa(i)
		if open == '{' {
			token, err := w.d.Token()
			if err != nil {
				return err
			}
			name, _ = token.(string)
		}
		if len(name) > maxValue {
			name = strings.ToValidUTF8(name[:maxValue], "") + "…"
		}
		if err := w.value(child, name, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

// scalarOf is a value as text. A long one is cut before anything is done to it.
func scalarOf(token json.Token) (text, kind, cut string) {
	kind = "null"
	switch v := token.(type) {
	case string:
		text, kind = v, "string"
	case json.Number:
		text, kind = v.String(), "number-v"
	case bool:
		text, kind = strconv.FormatBool(v), "bool"
	default:
		text = "null"
	}
	if n := len(text); n > maxValue {
		text = strings.ToValidUTF8(text[:maxValue], "")
		cut = fmt.Sprintf("cut after %s of %s bytes", count(len(text)), count(n))
	}
	if kind == "string" {
		text = `"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`, "\t", `\t`, `\`, `\\`).Replace(text) + `"`
	}
	return shown(text), kind, cut
}

// textOf is a payload that is not JSON, as far as it is shown. A character that is shown as a code takes the room of its code.
func textOf(raw []byte) (text, cut string) {
	text = shown(string(raw[:min(len(raw), maxShown)]))
	if !utf8.Valid(raw) {
		cut = "It is not UTF-8."
	}
	if len(raw) > maxShown || len(text) > maxShown {
		text = strings.ToValidUTF8(text[:min(len(text), maxShown)], "")
		cut = strings.TrimSpace(fmt.Sprintf("Only the beginning of its %s bytes is shown. %s", count(len(raw)), cut))
	}
	return text, cut
}

// inputAndResult returns these members of a decision as they are written, nil where there are none. It passes over the
// others, and reads no value.
func inputAndResult(raw []byte) (input, result []byte) {
	in := decision.Into(raw, 0)
	for in.Next() {
		switch {
		case in.Is("input"):
			input = raw[in.Value:in.End]
		case in.Is("result"):
			result = raw[in.Value:in.End]
		}
	}
	if in.Torn() {
		return nil, nil
	}
	return input, result
}
