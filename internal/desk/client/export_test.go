package client

// Told is how many decisions a place remembers.
func (p *followed) Told() int { return len(p.told) }
