package fallback

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// scanner reads a window of the directory at a time and goes on where the last
// window ended. Were it to start at the top each time, the same entries could
// hide all others for ever.
type scanner struct {
	fsys  FS
	limit int
	mu    sync.Mutex
	dir   Dir
}

// window returns the stems of at most limit further entries, the oldest first,
// each once; foreign names come back beside them. At the end of the directory
// it goes on from the top, so a directory of up to limit entries is seen whole.
func (sc *scanner) window() (files []stem, foreign []string, err error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	names, err := sc.names()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read spool directory: %w", err), sc.close())
	}
	for _, name := range names {
		switch f, k := classify(name); k {
		case kindData, kindMeta:
			files = append(files, f)
		case kindForeign:
			foreign = append(foreign, name)
		}
	}
	slices.SortFunc(files, older)
	return slices.CompactFunc(files, func(a, b stem) bool { return a.text == b.text }), foreign, nil
}

func (sc *scanner) names() ([]string, error) {
	if sc.dir == nil {
		dir, err := sc.fsys.ReadDir()
		if err != nil {
			return nil, err
		}
		sc.dir = dir
	}
	var names []string
	for rewound := false; len(names) < sc.limit; {
		part, err := sc.dir.Names(sc.limit - len(names))
		names = append(names, part...)
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if rewound {
			break
		}
		if err := sc.dir.Rewind(); err != nil {
			return nil, err
		}
		rewound = true
	}
	return names, nil
}

func (sc *scanner) close() error {
	if sc.dir == nil {
		return nil
	}
	err := sc.dir.Close()
	sc.dir = nil
	return err
}
