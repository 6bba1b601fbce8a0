package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNightly_NotSetChangesNothing(t *testing.T) {
	t.Parallel()
	s, _, err := Load(Desk, []string{database, "DOCKET_ARCHIVE_TO=/x"})
	if err != nil {
		t.Fatal(err)
	}
	if of, own := s.ForArchive(); s.ArchiveAge() != 0 || !s.QuietHours().Always() || s.StorageClasses() != nil || own || of.DatabaseURL != s.DatabaseURL {
		t.Errorf("age %d, hours %v, own connection %v", s.ArchiveAge(), s.QuietHours(), own)
	}
}

func TestNightly_Settings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte("postgres://owner:first@h/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, err := Load(Desk, []string{database, "DOCKET_ARCHIVE_TO=s3://bucket/x", "DOCKET_ARCHIVE_AFTER=90d", "DOCKET_ARCHIVE_HOURS=22:30-04:00 Europe/Berlin", "DOCKET_ARCHIVE_CLASSES=90:GLACIER_IR",
		"DOCKET_ARCHIVE_DATABASE_URL_FILE=" + path})
	if err != nil {
		t.Fatal(err)
	}
	if s.ArchiveAge() != 90 || s.QuietHours().String() != "22:30-04:00 Europe/Berlin" || s.StorageClasses().At(91) != "GLACIER_IR" {
		t.Errorf("age %d, hours %v, classes %v", s.ArchiveAge(), s.QuietHours(), s.StorageClasses())
	}
	of, own := s.ForArchive()
	if !own || of.DatabaseURL.Reveal() != "postgres://owner:first@h/x" || s.DatabaseURL.Reveal() == of.DatabaseURL.Reveal() {
		t.Errorf("own %v", own)
	}
	if err := os.WriteFile(path, []byte("postgres://owner:second@h/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fresh, err := of.FreshDatabaseURL(); err != nil || fresh.Reveal() != "postgres://owner:second@h/x" {
		t.Errorf("after the file changed: %v", err)
	}
	if fresh, err := s.FreshDatabaseURL(); err != nil || fresh != s.DatabaseURL {
		t.Errorf("the desk's own connection changed: %v", err)
	}
}

// A file of the desk's own connection says nothing of that of the archive.
func TestNightly_ConnectionIsItsOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte("postgres://desk:p@h/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, err := Load(Desk, []string{"DOCKET_DATABASE_URL_FILE=" + path, "DOCKET_ARCHIVE_TO=/x", "DOCKET_ARCHIVE_AFTER=90d", "DOCKET_ARCHIVE_DATABASE_URL=postgres://owner:p@h/x"})
	if err != nil {
		t.Fatal(err)
	}
	of, _ := s.ForArchive()
	if fresh, err := of.FreshDatabaseURL(); err != nil || fresh.Reveal() != "postgres://owner:p@h/x" {
		t.Errorf("%q, %v", fresh.Reveal(), err)
	}
}

func TestNightly_Complaints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		want    []string
	}{
		"no place":           {[]string{"DOCKET_ARCHIVE_AFTER=90d"}, []string{"DOCKET_ARCHIVE_AFTER: is set without DOCKET_ARCHIVE_TO"}},
		"not days":           {[]string{"DOCKET_ARCHIVE_AFTER=2160h", "DOCKET_ARCHIVE_TO=/x"}, []string{`DOCKET_ARCHIVE_AFTER: "2160h" is not a number of days`}},
		"hours alone":        {[]string{"DOCKET_ARCHIVE_HOURS=01:00-05:00"}, []string{"DOCKET_ARCHIVE_HOURS: is set without DOCKET_ARCHIVE_AFTER"}},
		"connection alone":   {[]string{"DOCKET_ARCHIVE_DATABASE_URL=postgres://u:pa@h/x"}, []string{"DOCKET_ARCHIVE_DATABASE_URL: is set without DOCKET_ARCHIVE_AFTER"}},
		"classes of a path":  {[]string{"DOCKET_ARCHIVE_TO=/x", "DOCKET_ARCHIVE_CLASSES=0:STANDARD"}, []string{"DOCKET_ARCHIVE_CLASSES: is for a bucket"}},
		"a class that waits": {[]string{"DOCKET_ARCHIVE_TO=s3://bucket", "DOCKET_ARCHIVE_CLASSES=90:GLACIER"}, []string{`DOCKET_ARCHIVE_CLASSES: "90:GLACIER" names GLACIER, which cannot be read at once`}},
		"all at once": {[]string{"DOCKET_ARCHIVE_AFTER=0d", "DOCKET_ARCHIVE_HOURS=1-5", "DOCKET_ARCHIVE_CLASSES=x"},
			[]string{"DOCKET_ARCHIVE_AFTER: ", "DOCKET_ARCHIVE_HOURS: ", "DOCKET_ARCHIVE_CLASSES: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(Desk, append([]string{database}, c.environ...))
			var all Complaints
			if !errors.As(err, &all) || len(all) != len(c.want) {
				t.Fatalf("complaints %v, want %q", err, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(all[i].Error(), want) || strings.Contains(all[i].Error(), "pa@") {
					t.Errorf("complaint %q, want %q", all[i], want)
				}
			}
		})
	}
}
