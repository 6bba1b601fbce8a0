package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecret_FileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	s, _, err := Load(Consumer, []string{
		"DOCKET_DATABASE_URL=postgres://u:p@db/x", "DOCKET_KAFKA_SASL_MECHANISM=PLAIN", "DOCKET_KAFKA_SASL_USERNAME=u", "DOCKET_KAFKA_TLS=true",
		"DOCKET_KAFKA_SASL_PASSWORD_FILE=" + path,
	})
	if err != nil {
		t.Fatal(err)
	}
	const variable = "DOCKET_KAFKA_SASL_PASSWORD"
	write("second\n")
	if got, err := s.Fresh(variable, s.KafkaSASLPassword); err != nil || got.Reveal() != "second" {
		t.Errorf("after the file changed: %q, %v", got.Reveal(), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	got, err := s.Fresh(variable, s.KafkaSASLPassword)
	if err == nil || got.Reveal() != "first" {
		t.Errorf("without the file: %q, %v; want what was loaded and an error", got.Reveal(), err)
	} else if text := err.Error(); !strings.Contains(text, variable+"_FILE") || strings.Contains(text, path) {
		t.Errorf("the error %q should name the variable and not the path", text)
	}
	if got, err := s.Fresh("DOCKET_DATABASE_URL", s.DatabaseURL); err != nil || got != s.DatabaseURL {
		t.Errorf("a secret of no file: %q, %v", got.Reveal(), err)
	}
}
