package config

import (
	"net/url"
	"regexp"
	"strings"
)

// bucketName is what S3 allows as the name of a bucket.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (l *loader) archive() {
	const to, endpoint, access, secret, ca = "DOCKET_ARCHIVE_TO", "DOCKET_ARCHIVE_S3_ENDPOINT", "DOCKET_ARCHIVE_S3_ACCESS_KEY", "DOCKET_ARCHIVE_S3_SECRET_KEY", "DOCKET_ARCHIVE_S3_CA"
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
