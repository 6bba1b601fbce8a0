package contexts

import (
	"fmt"
	"strings"

	"docket/internal/desk/client"
	"docket/internal/service/config"
)

// Target is the desk that commands ask.
type Target struct {
	client.Config
	// Context is the name of the context that says so; empty: the environment or a flag does.
	Context string
}

// MisuseError says that the settings contradict each other, or cannot be used.
type MisuseError struct{ text string }

func (e *MisuseError) Error() string { return e.text }

func misuse(format string, args ...any) error { return &MisuseError{fmt.Sprintf(format, args...)} }

// Flags are the general flags that choose a desk. They win over the environment, and that over the current context.
type Flags struct{ Server, Context, TokenFile, CAFile string }

// Of returns the desk that flags and an environment choose; nil: none, so that the database is asked. The current context
// counts where nothing else is named, also no database. A token goes only to the server that it is named with.
func Of(environ []string, given Flags) (*Target, error) {
	s, err := config.ServerOf(environ)
	if err != nil {
		return nil, misuse("%v", err)
	}
	if s, err = given.over(s); err != nil {
		return nil, err
	}
	switch {
	case (s.URL != "" || s.Context != "") && s.Exported:
		return nil, misuse("both a desk and a database are named: leave away one of DOCKET_SERVER (--server, --context) and DOCKET_DATABASE_URL")
	case s.URL != "" && s.Context != "":
		return nil, misuse("both a server and a context are named: leave away one of them")
	case s.URL != "":
		return &Target{Config: client.Config{Server: s.URL, Token: s.Token.Reveal(), CA: s.CA, Cert: s.Cert, Key: s.Key, Plain: s.Plain}}, nil
	case s.Context == "" && s.Database:
		return nil, nil
	}
	f, err := Read(Path(environ))
	if err != nil {
		return nil, misuse("%v", err)
	}
	name := s.Context
	if name == "" {
		name = f.Current
	}
	if name == "" {
		return nil, nil
	}
	c := f.Find(name)
	if c == nil {
		return nil, misuse("there is no context %s; `docket context list` shows them", quoted(name))
	}
	return c.target(s, given)
}

// over returns the settings as flags change them. A server or context by flag does not get the token of another.
func (given Flags) over(s config.Server) (config.Server, error) {
	if given.Server != "" && given.Context != "" {
		return s, misuse("--server and --context contradict each other; give one of them")
	}
	if given.Context != "" && given.Context != s.Context || given.Server != "" && (s.Context != "" || s.URL != "" && given.Server != s.URL) {
		s = config.Server{Plain: s.Plain, Database: s.Database, Exported: s.Exported}
	}
	switch {
	case given.Server != "":
		s.URL, s.Context = given.Server, ""
	case given.Context != "":
		s.URL, s.Context = "", given.Context
	}
	if given.CAFile != "" {
		s.CA = given.CAFile
	}
	if given.TokenFile != "" {
		secret, err := config.SecretIn(given.TokenFile)
		if err != nil {
			return s, misuse("--token-file: %v", err)
		}
		s.Token = secret
	}
	return s, nil
}

// target is the desk of a context. Its own token wins over that of the environment. That token goes only to the context
// that the environment names, as it may be for another desk. The same holds for certificates.
func (c *Context) target(s config.Server, given Flags) (*Target, error) {
	t := &Target{Context: c.Name, Config: client.Config{Server: c.Server, Token: c.Token, CA: c.CAFile, Cert: c.CertFile, Key: c.KeyFile, Plain: c.Plain}}
	if c.TokenFile != "" && given.TokenFile == "" {
		secret, err := config.SecretIn(c.TokenFile)
		if err != nil {
			return nil, misuse("context %s: the file with its token: %v", quoted(c.Name), err)
		}
		t.Token = secret.Reveal()
	}
	named := s.Context == c.Name
	if given.TokenFile != "" || named && t.Token == "" {
		t.Token = s.Token.Reveal()
	}
	if given.CAFile != "" || named && t.CA == "" {
		t.CA = s.CA
	}
	if named && t.Cert == "" {
		t.Cert, t.Key = s.Cert, s.Key
	}
	return t, nil
}

func quoted(name string) string { return strings.TrimSpace(fmt.Sprintf("%+q", name)) }
