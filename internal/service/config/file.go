package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// FileVariable names a YAML file with settings. It is not a setting itself: the file cannot name another one.
const FileVariable = prefix + "CONFIG"

const maxFile = 1 << 20

// withFile adds the settings of the file that FileVariable names to those of the environment, which win. The complaints are
// all that is wrong with the file; none of them quotes a value, as it may be a secret.
func withFile(environ map[string]string) (Complaints, map[string]string) {
	path := environ[FileVariable]
	delete(environ, FileVariable)
	if path == "" {
		return nil, environ
	}
	wrong, file := readFile(path)
	for name := range file {
		if setIn(environ, name) {
			delete(file, name)
		}
	}
	maps.Copy(environ, file)
	return wrong, environ
}

// setIn says if the environment has the setting. A secret is one setting, whether it is given or the file that holds it.
// The name of another setting may end like that of such a file.
func setIn(environ map[string]string, name string) bool {
	for _, s := range table() {
		if s.Name != name && (!s.Secret || s.Name+fileSuffix != name) {
			continue
		}
		value, given := environ[s.Name]
		return given && (value != "" || s.keepNull) || s.Secret && environ[s.Name+fileSuffix] != ""
	}
	return false
}

// readFile returns the settings of a file by their variables.
func readFile(path string) (wrong Complaints, values map[string]string) {
	text, err := readSettings(path)
	if err != nil {
		return Complaints{{FileVariable, err.Error()}}, nil
	}
	documents, err := documentsOf(text)
	switch {
	case err != nil:
		return Complaints{{FileVariable, "the file is not YAML" + lineOf(err)}}, nil
	case len(documents) == 0:
		return nil, nil // empty, or comments alone
	case len(documents) > 1:
		return Complaints{{FileVariable, fmt.Sprintf("the file has a second document (line %d); write all settings into the first", documents[1].Line)}}, nil
	}
	root := documents[0]
	if root.Kind != yaml.MappingNode {
		return Complaints{{FileVariable, "the file must hold lines like kafka_topic: decision-logs"}}, nil
	}
	names, listed := fileNames(), listed()
	keys := make([]string, 0, len(names))
	for key := range names {
		keys = append(keys, key)
	}
	values = map[string]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		name, known := names[strings.ToLower(strings.TrimPrefix(key.Value, prefix))]
		_, twice := values[name]
		text, fits := scalar(value, listed[name])
		at := fmt.Sprintf(" (line %d of the file)", key.Line)
		switch {
		case !known:
			hint := "; check its spelling, or remove it"
			if near := Nearest(strings.ToLower(strings.TrimPrefix(key.Value, prefix)), keys); near != "" {
				hint = "; did you mean " + near + "?"
			}
			wrong = append(wrong, Complaint{quote(key.Value), "there is no such setting" + hint + at})
		case twice:
			wrong = append(wrong, Complaint{name, "is set twice" + at})
		case !fits:
			form := "must be one value"
			if listed[name] {
				form += ", or a list of values"
			}
			wrong = append(wrong, Complaint{name, form + at})
		case value.Tag != "!!null":
			values[name] = text
		}
	}
	return wrong, values
}

// documentsOf reads the documents of a file, without those that are empty.
func documentsOf(text []byte) (all []*yaml.Node, err error) {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var one yaml.Node
		switch err := d.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		if len(one.Content) > 0 && one.Content[0].Tag != "!!null" {
			all = append(all, one.Content[0])
		}
	}
}

// fileNames are the keys of a file, with the variable of each.
func fileNames() map[string]string {
	names := map[string]string{}
	for _, s := range table() {
		names[strings.ToLower(strings.TrimPrefix(s.Name, prefix))] = s.Name
		if s.Secret {
			names[strings.ToLower(strings.TrimPrefix(s.Name+fileSuffix, prefix))] = s.Name + fileSuffix
		}
	}
	return names
}

// listed are the settings that take several values by comma.
func listed() map[string]bool {
	all := map[string]bool{}
	for _, s := range table() {
		all[s.Name] = strings.HasSuffix(s.Unit, "by comma")
	}
	return all
}

// scalar is a value as its variable would have it: a list by commas, if it may be one. A list of one value is that value.
func scalar(n *yaml.Node, list bool) (text string, fits bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, true
	case yaml.SequenceNode:
		if !list && len(n.Content) > 1 {
			return "", false
		}
		parts := make([]string, len(n.Content))
		for i, one := range n.Content {
			if one.Kind != yaml.ScalarNode {
				return "", false
			}
			parts[i] = one.Value
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}

// once has the files that can be read only once, such as pipes, by path: a func() ([]byte, error) each. A command that loads the
// settings of several programs finds the same in them each time.
var once sync.Map

func readSettings(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
	case info.IsDir():
		return nil, errors.New("is a directory, not a file")
	case info.Mode().IsRegular():
		return readAll(path)
	}
	read, _ := once.LoadOrStore(path, sync.OnceValues(func() ([]byte, error) { return readAll(path) }))
	return read.(func() ([]byte, error))() //nolint:forcetypeassert // nothing else is in it
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
	case len(text) > maxFile:
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	return text, nil
}

var lineNumber = regexp.MustCompile(`line \d+`)

// lineOf is the line of a YAML error. The rest of its text may quote a secret.
func lineOf(err error) string {
	if line := lineNumber.FindString(err.Error()); line != "" {
		return " (" + line + ")"
	}
	return ""
}
