package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Fresh is a secret as it is now. If it came from a file, the file is read again, so that a new password needs no restart.
// Else, and for a file that cannot be read twice, such as a pipe, it is the loaded one. The variable is the setting's,
// without _FILE. An error says which file cannot be used, never its content. The loaded secret comes with it, for callers
// that want to try it.
func (s Settings) Fresh(variable string, loaded Secret) (Secret, error) {
	path, ok := s.files[variable]
	if !ok {
		return loaded, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return loaded, nil // a pipe gives it once, and whoever opens it again waits
	}
	text, err := readSecret(path)
	if err != nil {
		return loaded, fmt.Errorf("%s%s: %w", variable, fileSuffix, err)
	}
	return Secret(text), nil
}

// ReadPipes replaces secret files of these programs that can be read only once, such as pipes, by what they hold. To load the
// settings of two programs, begin with it: to open a pipe again can wait for ever. The pipe of another program is not opened.
func ReadPipes(environ []string, programs ...Program) ([]string, error) {
	values := ours(environ)
	for _, s := range Table() {
		from := s.Name + fileSuffix
		path := values[from]
		if !s.Secret || path == "" || values[s.Name] != "" || !slices.ContainsFunc(programs, s.Of) {
			continue
		}
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
			continue
		}
		secret, err := readSecret(path)
		if err != nil {
			return nil, Complaint{from, err.Error()}
		}
		environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, from+"=") || strings.HasPrefix(v, s.Name+"=") })
		environ = append(environ, s.Name+"="+secret)
	}
	return environ, nil
}
