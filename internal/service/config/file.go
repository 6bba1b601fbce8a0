package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"

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
func setIn(environ map[string]string, name string) bool {
	base := strings.TrimSuffix(name, fileSuffix)
	for _, s := range table() {
		if s.Name != base || !s.Secret && s.Name != name {
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
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return Complaints{{FileVariable, "the file is not YAML" + lineOf(err)}}, nil
	}
	if len(document.Content) == 0 {
		return nil, nil // empty, or comments alone
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return Complaints{{FileVariable, "the file must hold lines like kafka_topic: decision-logs"}}, nil
	}
	names := fileNames()
	keys := make([]string, 0, len(names))
	for key := range names {
		keys = append(keys, key)
	}
	values = map[string]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		name, known := names[strings.ToLower(strings.TrimPrefix(key.Value, prefix))]
		_, twice := values[name]
		text, fits := scalar(value)
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
			wrong = append(wrong, Complaint{name, "must be one value, or a list of values" + at})
		case value.Tag != "!!null":
			values[name] = text
		}
	}
	return wrong, values
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

// scalar is a value as its variable would have it: a list by commas.
func scalar(n *yaml.Node) (text string, fits bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, true
	case yaml.SequenceNode:
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

func readSettings(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
	case info.IsDir():
		return nil, errors.New("is a directory, not a file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("the file has %d bytes; at most %d are allowed", info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
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
