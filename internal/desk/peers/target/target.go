// Package target reads the addresses of the programs that a desk looks at.
package target

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Target is the address of one program, or of all behind one name.
type Target struct {
	Text string   // as it was written
	URL  *url.URL // nil: all addresses of Host
	Host string   // a name of the DNS
	Port string
}

// scheme begins a target that stands for every address of a name.
const scheme = "dns:"

var (
	errForm   = errors.New("must be http://host:port, https://host:port or dns:name:port")
	errSecret = errors.New("must hold no user, no password, no query and no fragment, as it is shown")
)

// Parse reads http://host:port, https://host:port, or dns:name:port. An error never quotes the text.
func Parse(text string) (Target, error) {
	if rest, named := strings.CutPrefix(text, scheme); named {
		host, port, err := net.SplitHostPort(rest)
		if err != nil || host == "" || !portOf(port) || strings.ContainsAny(host, "/@?#") {
			return Target{}, errForm
		}
		return Target{Text: text, Host: host, Port: port}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() != "" && !portOf(u.Port()) {
		return Target{}, errForm
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return Target{}, errSecret
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return Target{Text: text, URL: u}, nil
}

func portOf(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
