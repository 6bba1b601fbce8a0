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
// works on it in another goroutine while the next ones are read: one of both waits for the database, and the other one
// calculates. The portions that are taken or wait for it have at most ahead times these bytes, or are a single one. The
// lines are valid until take returns. An error of take ends read. Both have returned at the end.
func inPortions(rows, bytes, ahead int, read func(each func(line []byte) error) error, take func(lines [][]byte) error) error {
	full, empty := make(chan *portion, ahead), make(chan *portion, ahead+1)
	room := make(chan struct{}, ahead) // a place for each so many bytes
	places := func(p *portion) int { return min(max((len(p.text)+bytes-1)/bytes, 1), ahead) }
	p := &portion{}
	ended := make(chan struct{})
	var refused error // of take, until ended is closed
	go func() {
		defer close(ended)
		for p := range full {
			if refused = take(p.split()); refused != nil {
				return
			}
			n := places(p)
			p.clear(bytes)
			empty <- p
			for range n {
				<-room
			}
		}
	}()
	pass := func() error {
		for range places(p) {
			select {
			case room <- struct{}{}:
			case <-ended:
				return refused
			}
		}
		full <- p // it has a place for each portion that has room
		p = nil
		return nil
	}
	err := read(func(line []byte) error {
		if p == nil {
			select {
			case p = <-empty:
			default:
				p = &portion{}
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
