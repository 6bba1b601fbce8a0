package config

import (
	"net/url"
	"regexp"
	"strings"

	"docket/internal/history/archive/nightly"
)

const (
	archiveTo             = "DOCKET_ARCHIVE_TO"
	archiveAfter          = "DOCKET_ARCHIVE_AFTER"
	archiveHours          = "DOCKET_ARCHIVE_HOURS"
	archiveClasses        = "DOCKET_ARCHIVE_CLASSES"
	archiveDatabaseSecret = "DOCKET_ARCHIVE_DATABASE_URL" //nolint:gosec // the name of a setting
)

// ArchiveAge returns the age in days from which on the desk archives days. 0: it archives none.
func (s Settings) ArchiveAge() int {
	days, err := nightly.ParseAge(s.ArchiveAfter)
	if err != nil {
		return 0
	}
	return days
}

// QuietHours returns the hours in which the desk archives days.
func (s Settings) QuietHours() nightly.Hours {
	hours, _ := nightly.ParseHours(s.ArchiveHours) // Load refuses others
	return hours
}

// StorageClasses returns the storage classes of archives.
func (s Settings) StorageClasses() nightly.Classes {
	classes, _ := nightly.ParseClasses(s.ArchiveClasses) // Load refuses others
	return classes
}

// ForArchive returns the settings with the database connection of the archive. own reports whether it is another than
// that of the desk.
func (s Settings) ForArchive() (of Settings, own bool) {
	if s.ArchiveDatabaseURL == "" {
		return s, false
	}
	s.DatabaseURL, s.asked = s.ArchiveDatabaseURL, false
	files := map[string]string{}
	if path, ok := s.files[archiveDatabaseSecret]; ok {
		files[databaseVariable] = path
	}
	s.files = files
	return s, true
}

// nightly looks at an archive that runs by itself.
func (l *loader) nightly() {
	s := l.settings
	if s.ArchiveAfter != "" {
		if _, err := nightly.ParseAge(s.ArchiveAfter); err != nil {
			l.complain(archiveAfter, "%s %v", quote(s.ArchiveAfter), err)
		} else if s.ArchiveTo == "" && l.fine(archiveTo) {
			l.complain(archiveAfter, "is set without %s; name the directory or bucket of the archives", archiveTo)
		}
	}
	if _, err := nightly.ParseHours(s.ArchiveHours); err != nil {
		l.complain(archiveHours, "%s %v", quote(s.ArchiveHours), err)
	}
	if _, err := nightly.ParseClasses(s.ArchiveClasses); err != nil {
		l.complain(archiveClasses, "%s %v", quote(s.ArchiveClasses), err)
	} else if s.ArchiveClasses != "" && s.ArchiveTo != "" && !strings.HasPrefix(s.ArchiveTo, "s3://") && l.fine(archiveTo) {
		l.complain(archiveClasses, "is for a bucket, and %s is a directory; remove one of them", archiveTo)
	}
	for variable, text := range map[string]string{archiveHours: s.ArchiveHours, archiveDatabaseSecret: s.ArchiveDatabaseURL.Reveal()} {
		if text != "" && s.ArchiveAfter == "" && l.fine(variable, archiveAfter) {
			l.complain(variable, "is set without %s; set it, or remove this setting", archiveAfter)
		}
	}
}

// bucketName is what S3 allows as the name of a bucket.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (l *loader) archive() {
	const to, endpoint, access, secret, ca = archiveTo, "DOCKET_ARCHIVE_S3_ENDPOINT", "DOCKET_ARCHIVE_S3_ACCESS_KEY", "DOCKET_ARCHIVE_S3_SECRET_KEY", "DOCKET_ARCHIVE_S3_CA"
	s := l.settings
	scheme, rest, isURL := strings.Cut(s.ArchiveTo, "://")
	bucket, _, _ := strings.Cut(rest, "/")
	switch {
	case isURL && scheme != "s3":
		l.complain(to, "is neither a path nor s3://bucket/prefix")
	case isURL && !bucketName.MatchString(bucket):
		l.complain(to, "has no valid bucket; write it like s3://bucket or s3://bucket/prefix, with 3 to 63 of a-z 0-9 . - in the bucket")
	case strings.ContainsRune(s.ArchiveTo, 0) || s.ArchiveTo != "" && strings.TrimSpace(s.ArchiveTo) == "":
		l.complain(to, "is not a path")
	}
	// It is not shown: somebody may have put a password into it.
	switch u, err := url.Parse(s.ArchiveS3Endpoint); {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		l.complain(endpoint, "is not an http or https URL; write it like https://s3.example.org")
	case u.User != nil:
		l.complain(endpoint, "contains a user or a password; put them into %s and %s", access, secret)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		l.complain(endpoint, "has more than scheme, host and port; put bucket and prefix into %s", to)
	}
	switch {
	case s.ArchiveS3AccessKey != "" && s.ArchiveS3SecretKey == "" && l.fine(secret):
		l.complain(secret, "is missing; %s needs its secret key", access)
	case s.ArchiveS3AccessKey == "" && s.ArchiveS3SecretKey != "":
		l.complain(access, "is missing; %s needs its access key", secret)
	}
	if strings.ContainsRune(s.CacheDir, 0) || s.CacheDir != "" && strings.TrimSpace(s.CacheDir) == "" {
		l.complain("DOCKET_CACHE_DIR", "is not a path")
	}
	if s.ArchiveS3CA != "" {
		if _, err := authorities(s.ArchiveS3CA); err != nil {
			l.complain(ca, "%v", err)
		}
	}
}
