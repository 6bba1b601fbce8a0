package fallback

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// scanner reads the directory window by window and continues where the last window ended. If it always started at the
// top, the same entries could hide all others for ever.
type scanner struct {
	fsys  FS
	limit int
	mu    sync.Mutex
	dir   Dir
}

// view is the content of a window.
type view struct {
	files   []stem // the oldest first, each once
	tmp     []string
	foreign []string
}

// window returns at most limit further entries. At the end of the directory it continues from the top. So a directory
// of up to limit entries is seen whole.
func (sc *scanner) window() (view, error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	names, err := sc.names()
	if err != nil {
		return view{}, errors.Join(fmt.Errorf("read spool directory: %w", err), sc.close())
	}
	var v view
	for _, name := range names {
		switch f, k := classify(name); k {
		case kindData, kindMeta:
			v.files = append(v.files, f)
		case kindTmp:
			v.tmp = append(v.tmp, name)
		case kindForeign:
			v.foreign = append(v.foreign, name)
		}
	}
	slices.SortFunc(v.files, older)
	v.files = slices.CompactFunc(v.files, func(a, b stem) bool { return a.text == b.text })
	return v, nil
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
