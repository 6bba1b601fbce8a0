package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"docket/internal/programs/cli/term"
)

// Context is a desk with a name. It names the files of secrets; Token is there only if a person asked for that.
type Context struct {
	Name      string `yaml:"name"`
	Server    string `yaml:"server"`
	TokenFile string `yaml:"token_file,omitempty"`
	Token     string `yaml:"token,omitempty"`
	CAFile    string `yaml:"ca_file,omitempty"`
	CertFile  string `yaml:"cert_file,omitempty"`
	KeyFile   string `yaml:"key_file,omitempty"`
	Plain     bool   `yaml:"plain,omitempty"` // http:// is allowed to other hosts
}

// File is the file of contexts.
type File struct {
	Current  string    `yaml:"current,omitempty"`
	Contexts []Context `yaml:"contexts"`
	path     string
}

const mostBytes = 1 << 20

// Path returns the path of the file for an environment; empty: there is no home directory.
func Path(environ []string) string {
	values := term.Environment(environ)
	if dir := values["XDG_CONFIG_HOME"]; filepath.IsAbs(dir) { // as its specification says
		return filepath.Join(dir, "docket", "config.yaml")
	}
	if home := values["HOME"]; home != "" {
		return filepath.Join(home, ".config", "docket", "config.yaml")
	}
	return ""
}

// Read reads the file at path. A missing one has no contexts.
func Read(path string) (*File, error) {
	f := &File{path: path}
	if path == "" {
		return f, nil
	}
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	defer func() { _ = in.Close() }() // nothing was written
	info, err := in.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(in, mostBytes))
	if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is not a file of contexts", path) // an error of the parser could quote a token
	}
	return f, f.guarded(info.Mode())
}

// The bits of a mode that give others a file.
const (
	othersWrite = 0o022
	othersRead  = 0o044
)

// OpenError says that others can use a file of contexts.
type OpenError struct{ Path, Others string }

func (e *OpenError) Error() string {
	return fmt.Sprintf("other users can %s; let only its owner use it: chmod 600 %s", e.Others, term.ShellWord(e.Path))
}

// guarded refuses a file that others can change, as they could name a server that gets the tokens. It also refuses one with
// a token in clear that others can read.
func (f *File) guarded(mode fs.FileMode) error {
	switch {
	case mode&othersWrite != 0:
		return &OpenError{f.path, "change " + f.path}
	case mode&othersRead != 0 && slices.ContainsFunc(f.Contexts, func(c Context) bool { return c.Token != "" }):
		return &OpenError{f.path, "read the token in " + f.path}
	}
	return nil
}

// Shown returns the server as it may be printed. A file that was written by hand can hold a password in it.
func (c Context) Shown() string {
	u, err := url.Parse(c.Server)
	if err != nil {
		return "(not a URL)"
	}
	if u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return c.Server
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	if u.RawQuery != "" {
		u.RawQuery = "***"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// Find returns the context of a name; nil: there is none.
func (f *File) Find(name string) *Context {
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Contexts[i]
}

// Names returns the names of all contexts.
func (f *File) Names() []string {
	names := make([]string, len(f.Contexts))
	for i, c := range f.Contexts {
		names[i] = c.Name
	}
	return names
}

// Put adds a context, or replaces the one of its name.
func (f *File) Put(c Context) {
	if old := f.Find(c.Name); old != nil {
		*old = c
		return
	}
	f.Contexts = append(f.Contexts, c)
}

// Remove removes a context. It reports whether there was one.
func (f *File) Remove(name string) bool {
	n := len(f.Contexts)
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
	return len(f.Contexts) < n
}

// Write writes the file for its owner alone. A reader sees the old file or the new one, never a part.
func (f *File) Write() error {
	if f.path == "" {
		return errors.New("there is no place for contexts: set HOME or XDG_CONFIG_HOME")
	}
	var text strings.Builder
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(f), e.Close()); err != nil {
		return fmt.Errorf("write the contexts: %w", err)
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the contexts: %w", err)
	}
	beside, err := os.CreateTemp(dir, ".config-*.yaml") // with mode 0600
	if err != nil {
		return fmt.Errorf("write the contexts: %w", err)
	}
	_, err = beside.WriteString(text.String())
	if err = errors.Join(err, beside.Sync(), beside.Close()); err == nil {
		err = os.Rename(beside.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("write the contexts: %w", errors.Join(err, os.Remove(beside.Name())))
	}
	return nil
}
