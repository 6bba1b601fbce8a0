package reader

import (
	"net"
	"slices"
	"strings"
)

// Fits reports whether a decision matches the filter, as the table's own search decides it. Raw is read only for
// Matches.
func (f Filter) Fits(d Decision) bool {
	return f.within(d) && f.fitsColumns(d) && f.fitsPayload(d)
}

func (f Filter) within(d Decision) bool {
	return (f.Since.IsZero() || !d.Time.Before(f.Since)) && (f.Until.IsZero() || d.Time.Before(f.Until))
}

// fitsColumns compares all but times and payload. A NULL fits nothing.
func (f Filter) fitsColumns(d Decision) bool {
	return among(f.Paths, d.Path, onPath) && among(f.Services, d.Service, func(have, want string) bool { return have == want }) &&
		among(f.RequestedBy, d.RequestedBy, askedBy) && (len(f.Verdicts) == 0 || slices.Contains(f.Verdicts, d.Verdict)) && f.fitsLabels(d)
}

func among(wanted []string, have *string, fits func(have, want string) bool) bool {
	if len(wanted) == 0 {
		return true
	}
	return have != nil && slices.ContainsFunc(wanted, func(want string) bool { return fits(*have, want) })
}

// onPath reports whether a path is the wanted one, or below it if that ends in "/*".
func onPath(path, want string) bool {
	if below, all := strings.CutSuffix(want, "/*"); all {
		return strings.HasPrefix(path, below+"/")
	}
	return path == want
}

// askedBy reports whether requested_by is the wanted one. A host without a port means all of its ports.
func askedBy(have, want string) bool {
	return have == want || !HasPort(want) && strings.TrimRight(have, "0123456789") == Portless(want)
}

// HasPort reports whether a value of requested_by names one port of a host.
func HasPort(who string) bool {
	_, port, err := net.SplitHostPort(who)
	return err == nil && port != ""
}

// Portless returns the text with which all ports of a host begin.
func Portless(host string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "[" + host + "]:" // IPv6 as people write it
	}
	return strings.TrimSuffix(host, ":") + ":"
}

func (f Filter) fitsLabels(d Decision) bool {
	if len(f.Labels) == 0 {
		return true
	}
	labels := parse(d.Labels)
	for name, want := range f.Labels {
		n := labels.get(name)
		if !n.there() {
			return false
		}
		have := n.scalar()
		if have == "" && !n.is(isString) {
			text, _ := n.json(len(want) + 1)
			have = string(text)
		}
		if have != want {
			return false
		}
	}
	return true
}

func (f Filter) fitsPayload(d Decision) bool {
	if len(f.Matches) == 0 {
		return true
	}
	whole := parse(d.Raw)
	return whole != nil && !slices.ContainsFunc(f.Matches, func(m Match) bool { return !m.fits(whole) })
}

// fits compares one value inside a decision.
func (m Match) fits(whole *node) bool {
	steps, err := ParsePointer(m.Pointer)
	if err != nil {
		return false
	}
	if m.In != "raw" {
		steps = append([]string{m.In}, steps...)
	}
	n := whole.at(steps...)
	return n != nil && (m.Value == nil || same(n, parse(m.Value)))
}
