package fallback

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// mostIdentities limits the lock file. Each opening of the directory adds 20 bytes or so to it.
const mostIdentities = 1 << 20

// changesBits is how many changes one opening of a spool can number.
const changesBits = 32

// identify reads the id of the directory, 16 hexadecimal digits, and the number of this opening, which is above those of all
// earlier ones. Clocks play no part in that. Both are the last whole line of the lock file, so a torn write does not count. The
// id is empty if the disk failed.
func (s *Spool) identify() {
	id, opening, err := identify(s.lock)
	s.note("identify spool directory", lockName, err)
	if err == nil {
		s.id, s.usage.since = id, opening<<changesBits
	}
}

// IdentityOf returns the id of a spool directory as its programs note it: package commitnote. It is empty if no program of
// this release has opened the directory.
func IdentityOf(dir fs.FS) (id string, err error) {
	file, err := dir.Open(lockName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open the lock of a spool: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, mostIdentities))
	if err != nil {
		return "", fmt.Errorf("read the lock of a spool: %w", err)
	}
	id, _ = lastIdentity(string(text))
	return id, nil
}

func identify(file File) (id string, opening int64, err error) {
	text, err := io.ReadAll(io.LimitReader(file, mostIdentities))
	if err != nil {
		return "", 0, err
	}
	if len(text) == mostIdentities {
		return "", 0, errFullIdentity
	}
	id, opening = lastIdentity(string(text))
	if id == "" {
		random := make([]byte, 8)
		rand.Read(random)
		id = hex.EncodeToString(random)
	}
	opening++
	return id, opening, inscribe(file, text, id, opening)
}

// inscribe writes an id and the number of an opening behind text, which is what the lock file has.
func inscribe(file File, text []byte, id string, opening int64) error {
	var line []byte
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = append(line, '\n')
	}
	line = fmt.Appendf(line, "%s %d\n", id, opening)
	n, err := file.Write(line)
	if err == nil && n < len(line) {
		err = errShortWrite
	}
	return errors.Join(err, file.Sync())
}

var errFullIdentity = errors.New("the lock file is full: stop the program and remove it")

// lastIdentity reads the last whole line; empty: there is none.
func lastIdentity(text string) (id string, opening int64) {
	for line := range strings.Lines(text) {
		whole, ended := strings.CutSuffix(line, "\n")
		name, number, _ := strings.Cut(whole, " ")
		n, err := strconv.ParseInt(number, 10, 64-changesBits-2)
		if ended && err == nil && n > 0 && len(name) == 16 && strings.Trim(name, "0123456789abcdef") == "" {
			id, opening = name, n
		}
	}
	return id, opening
}
