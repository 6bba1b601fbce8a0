package config

import (
	"fmt"
	"os"
)

// Fresh is a secret as it is now: read anew where it came from a file, so that one who is given a new password needs no
// restart, else what was loaded; where the file is none that can be read twice, such as a pipe, that stays. The variable
// is the setting's, without _FILE. An error says which file cannot be used, never what is in it; what was loaded comes
// with it, for callers who would rather try that.
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
