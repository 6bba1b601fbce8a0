package fallback

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// mostIdentities limits what is read of the lock file.
const mostIdentities = 64 << 10

// identity returns the id of the directory, 16 hexadecimal digits. It is the last whole line of the lock file, so a torn
// write does not count. The first process that has the directory makes one. Empty: the disk failed.
func (s *Spool) identity() string {
	id, err := identify(s.lock)
	s.note("identify spool directory", lockName, err)
	if err != nil {
		return ""
	}
	return id
}

func identify(file File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(file, mostIdentities))
	if err != nil {
		return "", err
	}
	if id := lastIdentity(string(text)); id != "" {
		return id, nil
	}
	if len(text) == mostIdentities {
		return "", errForeign
	}
	random := make([]byte, 8)
	rand.Read(random)
	id, line := hex.EncodeToString(random), []byte{}
	if len(text) > 0 {
		line = append(line, '\n')
	}
	line = fmt.Appendf(line, "%s\n", id)
	n, err := file.Write(line)
	if err == nil && n < len(line) {
		err = errShortWrite
	}
	return id, errors.Join(err, file.Sync())
}

func lastIdentity(text string) (id string) {
	for line := range strings.Lines(text) {
		whole, ended := strings.CutSuffix(line, "\n")
		if ended && len(whole) == 16 && strings.Trim(whole, "0123456789abcdef") == "" {
			id = whole
		}
	}
	return id
}
