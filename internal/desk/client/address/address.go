// Package address reads the URL of a desk. Clients and the settings follow the same rules.
package address

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// Parse reads the URL of a desk. Without plain, http is allowed to loopback alone. An error quotes no user, password or
// query of the text.
func Parse(text string, plain bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the server must be a URL like https://desk.example:8083")
	case u.User != nil:
		return nil, errors.New("the URL of the server must not hold a password: give a token instead")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("the URL of the server must end with its path")
	case u.Scheme == "http" && !plain && !loopback(u.Hostname()):
		return nil, fmt.Errorf("http:// would send the token in clear to %s: use https://, or allow it with DOCKET_SERVER_PLAIN=true", u.Host)
	}
	return u, nil
}

// loopback reports whether a host is this one, without asking a name server.
func loopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.Unmap().IsLoopback()
}
