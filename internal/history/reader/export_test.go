package reader

// Parsed is a JSON value as it is read, in the order of its names; false if it is not JSON.
func Parsed(raw []byte) (string, bool) {
	n := parse(raw)
	if n == nil {
		return "", false
	}
	text, _ := n.json(1 << 30)
	return string(text), true
}

// Shortest is a number as it is shown.
var Shortest = shortest
