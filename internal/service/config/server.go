package config

import (
	"strconv"
)

// Server says which desk commands ask, as the settings of the command line name it. Empty fields are not set.
type Server struct {
	URL, Context  string
	Token         Secret
	CA, Cert, Key string
	Plain         bool
	// Database says that a database is named, and Exported that the environment names it and not only a file.
	Database, Exported bool
}

// ServerOf reads the settings of the command line from the environment, and from the file that [FileVariable] names. The
// error is a [Complaint].
func ServerOf(environ []string) (Server, error) {
	own := ours(environ)
	set := func(name string) bool { return own[name] != "" || own[name+fileSuffix] != "" }
	exported := set("DOCKET_DATABASE_URL") || set("DOCKET_SHARD_URLS")
	_, values := withFile(own) // it adds to the same map; a command that needs the database reports the faults of the file
	s := Server{
		URL: values["DOCKET_SERVER"], Context: values["DOCKET_CONTEXT"], CA: values["DOCKET_SERVER_TLS_CA"], Cert: values["DOCKET_SERVER_TLS_CERT"], Key: values["DOCKET_SERVER_TLS_KEY"],
		Database: set("DOCKET_DATABASE_URL") || set("DOCKET_SHARD_URLS"), Exported: exported,
	}
	if text := values["DOCKET_SERVER_PLAIN"]; text != "" {
		plain, err := strconv.ParseBool(text)
		if err != nil {
			return s, Complaint{"DOCKET_SERVER_PLAIN", "must be true or false"}
		}
		s.Plain = plain
	}
	token, path := values["DOCKET_TOKEN"], values["DOCKET_TOKEN"+fileSuffix]
	switch {
	case token != "" && path != "":
		return s, Complaint{"DOCKET_TOKEN", "is set together with DOCKET_TOKEN_FILE; set one of them"}
	case path != "":
		secret, err := SecretIn(path)
		if err != nil {
			return s, Complaint{"DOCKET_TOKEN_FILE", err.Error()}
		}
		s.Token = secret
	case token != "":
		s.Token = Secret(token)
	}
	return s, nil
}

// SecretIn reads a secret from a file. The error names no path.
func SecretIn(path string) (Secret, error) {
	text, err := readSecret(path)
	if err != nil {
		return "", err
	}
	return Secret(text), nil
}
