//go:build integration

package keycloak

import (
	"crypto/tls"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser keeps cookies as a browser does, and leaves strict ones at home when another site leads to a page.
type browser struct {
	t       *testing.T
	home    string
	client  *http.Client
	cookies map[string]map[string]*http.Cookie // by host, by name
	asked   []string                           // every address
}

func (o *office) browser(t *testing.T) *browser {
	t.Helper()
	roots := o.front.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	b := &browser{t: t, home: o.front.URL, cookies: map[string]map[string]*http.Cookie{}, client: &http.Client{Timeout: time.Minute,
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return b
}

type answer struct {
	status int
	header http.Header
	body   string
	url    *url.URL
}

// get opens an address that a person typed or chose on the page of the same site.
func (b *browser) get(to string) answer { b.t.Helper(); return b.visit(http.MethodGet, to, nil, nil) }

// follow opens a link of the page that is shown.
func (b *browser) follow(a answer, link string) answer {
	b.t.Helper()
	m := regexp.MustCompile(`href="([^"]*)"[^>]*>` + link + `</a>`).FindStringSubmatch(a.body)
	if m == nil {
		b.t.Fatalf("no link %q on %s:\n%s", link, a.url, a.body)
	}
	return b.visit(http.MethodGet, html.UnescapeString(m[1]), nil, a.url)
}

var (
	formTag = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)".*?</form>`)
	hidden  = regexp.MustCompile(`<input[^>]*type="hidden"[^>]*>`)
	nameOf  = regexp.MustCompile(`name="([^"]*)"`)
	valueOf = regexp.MustCompile(`value="([^"]*)"`)
)

// submit fills in the form of the page that is shown.
func (b *browser) submit(a answer, fields map[string]string) answer {
	b.t.Helper()
	m := formTag.FindStringSubmatch(a.body)
	if m == nil {
		b.t.Fatalf("no form at %s: %d\n%s", a.url, a.status, a.body)
	}
	form := url.Values{}
	for _, input := range hidden.FindAllString(m[0], -1) {
		if n, v := nameOf.FindStringSubmatch(input), valueOf.FindStringSubmatch(input); n != nil && v != nil {
			form.Set(html.UnescapeString(n[1]), html.UnescapeString(v[1]))
		}
	}
	for name, value := range fields {
		form.Set(name, value)
	}
	return b.visit(http.MethodPost, html.UnescapeString(m[1]), form, a.url)
}

// visit opens an address, from a page if there is one, and goes where it leads.
func (b *browser) visit(method, to string, form url.Values, from *url.URL) answer {
	b.t.Helper()
	base := from
	if base == nil {
		base, _ = url.Parse(b.home + "/")
	}
	u, err := base.Parse(to)
	if err != nil {
		b.t.Fatal(err)
	}
	strict := from == nil || from.Host == u.Host
	for range 12 {
		a := b.one(method, u, form, strict)
		next := a.header.Get("Location")
		if a.status < 300 || a.status > 399 || next == "" {
			if on, is := strings.CutPrefix(a.header.Get("Refresh"), "0; url="); is { // the page itself leads on
				strict, next = true, on
			} else {
				return a
			}
		}
		to, err := u.Parse(next)
		if err != nil {
			b.t.Fatal(err)
		}
		strict = strict && to.Host == u.Host
		method, form, u = http.MethodGet, nil, to
	}
	b.t.Fatalf("%s leads in a circle", to)
	return answer{}
}

func (b *browser) one(method string, u *url.URL, form url.Values, strict bool) answer {
	b.t.Helper()
	b.asked = append(b.asked, u.String())
	q, err := http.NewRequestWithContext(b.t.Context(), method, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	q.Header.Set("Sec-Fetch-Site", map[bool]string{true: "same-origin", false: "cross-site"}[strict])
	for _, c := range b.cookies[u.Host] {
		if strict || c.SameSite != http.SameSiteStrictMode {
			q.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
	a, err := b.client.Do(q)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.cookies[u.Host] == nil {
		b.cookies[u.Host] = map[string]*http.Cookie{}
	}
	for _, c := range a.Cookies() {
		if b.cookies[u.Host][c.Name] = c; c.MaxAge < 0 || c.Value == "" {
			delete(b.cookies[u.Host], c.Name)
		}
	}
	return answer{a.StatusCode, a.Header, string(body), u}
}

// session is the cookie of the desk, nil without one.
func (b *browser) session() *http.Cookie {
	u, _ := url.Parse(b.home)
	return b.cookies[u.Host]["__Host-docket"]
}

// in reports whether the desk knows who it is.
func (b *browser) in() bool {
	b.t.Helper()
	a := b.get("/dead-letters")
	return a.status == http.StatusOK && a.url.Path == "/dead-letters"
}

// form goes to Keycloak's login.
func (b *browser) form(path string) answer {
	b.t.Helper()
	a := b.get(path)
	if a.url.Path != "/login" {
		b.t.Fatalf("%s leads to %s: %d\n%s", path, a.url, a.status, a.body)
	}
	return b.follow(a, "Log in with Keycloak")
}

// log logs in at Keycloak.
func (b *browser) log(name string) answer {
	b.t.Helper()
	return b.submit(b.form("/dead-letters"), map[string]string{"username": name, "password": "password-of-" + name})
}
