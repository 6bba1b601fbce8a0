package archive

// portion is some lines in one piece of memory.
type portion struct {
	text  []byte
	ends  []int
	lines [][]byte
}

func (p *portion) add(line []byte) {
	p.text = append(p.text, line...)
	p.ends = append(p.ends, len(p.text))
}

// split returns the lines. They are valid until the next add or clear.
func (p *portion) split() [][]byte {
	from := 0
	for _, end := range p.ends {
		p.lines = append(p.lines, p.text[from:end:end])
		from = end
	}
	return p.lines
}

// clear empties the portion. It keeps at most twice this many bytes in memory.
func (p *portion) clear(bytes int) {
	if p.text = p.text[:0]; cap(p.text) > 2*bytes {
		p.text = nil
	}
	clear(p.lines) // each of them would keep a text
	p.ends, p.lines = p.ends[:0], p.lines[:0]
}

// inPortions calls read, and passes its lines to take in portions. A portion is full with so many rows or bytes. take
// works on it in another goroutine while the next one is read: one of both waits for the database, and the other one
// calculates. The lines are valid until take returns. An error of take ends read. Both have returned at the end.
func inPortions(rows, bytes int, read func(each func(line []byte) error) error, take func(lines [][]byte) error) error {
	full, empty := make(chan *portion), make(chan *portion, 2)
	empty <- &portion{}
	p := &portion{}
	ended := make(chan struct{})
	var refused error // of take, until ended is closed
	go func() {
		defer close(ended)
		for p := range full {
			if refused = take(p.split()); refused != nil {
				return
			}
			p.clear(bytes)
			empty <- p
		}
	}()
	pass := func() error {
		select {
		case full <- p:
			p = nil
			return nil
		case <-ended:
			return refused
		}
	}
	err := read(func(line []byte) error {
		if p == nil {
			select {
			case p = <-empty:
			case <-ended:
				return refused
			}
		}
		if p.add(line); len(p.ends) < rows && len(p.text) < bytes {
			return nil
		}
		return pass()
	})
	if err == nil && p != nil && len(p.ends) > 0 {
		err = pass()
	}
	close(full)
	if <-ended; refused != nil {
		return refused
	}
	return err
}
