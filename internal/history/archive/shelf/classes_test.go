package shelf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/service/config"
)

// storage is as much of S3 as storage classes need.
type storage struct {
	mu      sync.Mutex
	classes map[string]string // by key; empty: STANDARD
	ignores bool              // it keeps no classes
	refuses string            // a key that it does not copy
	busy    int               // the status of each copy; 0: it copies
	code    string            // that it says with that status
	asked   int               // copies that were asked for
	copied  []string
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	class := r.Header.Get("X-Amz-Storage-Class")
	if s.ignores {
		class = ""
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("location"):
		_, _ = io.WriteString(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east-1</LocationConstraint>`)
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><IsTruncated>false</IsTruncated>`)
		for _, key := range slices.Sorted(maps.Keys(s.classes)) {
			_, _ = fmt.Fprintf(w, `<Contents><Key>%s</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag><Size>5</Size><StorageClass>%s</StorageClass></Contents>`, key, s.classes[key])
		}
		_, _ = io.WriteString(w, `</ListBucketResult>`)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		from, err := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
		if err != nil || r.Header.Get("X-Amz-Metadata-Directive") != "REPLACE" || strings.TrimPrefix(from, "/") != "bucket/"+key {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if s.asked++; s.busy != 0 {
			w.WriteHeader(s.busy)
			_, _ = io.WriteString(w, `<Error><Code>`+s.code+`</Code><Key>`+key+`</Key></Error>`)
			return
		}
		if key == s.refuses {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>InvalidObjectState</Code><Key>`+key+`</Key></Error>`)
			return
		}
		s.classes[key], s.copied = class, append(s.copied, key)
		_, _ = io.WriteString(w, `<CopyObjectResult><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag></CopyObjectResult>`)
	case r.Method == http.MethodHead:
		if is := s.classes[key]; is != "" && is != standard {
			w.Header().Set("X-Amz-Storage-Class", is)
		}
		w.Header().Set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
		w.Header().Set("ETag", `"x"`)
	default: // uploads
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
			s.classes[key] = class
			_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>`+key+`</Key><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
			return
		}
		if r.Method == http.MethodPut && !r.URL.Query().Has("uploadId") {
			s.classes[key] = class
		}
		w.Header().Set("ETag", `"x"`)
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>`+key+`</Key><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
		}
	}
}

const (
	oldPart  = "p/decision_logs/day=2026-01-01/decision_logs-2026-01-01-001-aaaaaa-00000000.0001.parquet"
	midPart  = "p/decision_logs-2026-05-01-001-aaaaaa-00000000.0001.jsonl.gz"
	newPart  = "p/decision_logs/day=2026-05-31/decision_logs-2026-05-31-001-aaaaaa-00000000.0001.parquet"
	manifest = "p/decision_logs-2026-01-01-001-aaaaaa-00000000.manifest.json"
)

// classed is a bucket with classes, on 2026-06-10.
func classed(t *testing.T, s *storage, classes string) *bucket {
	t.Helper()
	server := httptest.NewServer(s)
	opened, err := Open("s3://bucket/p", config.Settings{ArchiveS3Endpoint: server.URL, ArchiveS3Region: "us-east-1", ArchiveS3AccessKey: "key", ArchiveS3SecretKey: "secret", ArchiveClasses: classes})
	if err != nil {
		t.Fatal(err)
	}
	b := opened.(*bucket)
	b.now = func() time.Time { return time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC) }
	t.Cleanup(func() { b.Close(); server.Close() })
	return b
}

func always() error { return nil }

func TestAge_MovesFilesByTheirDay(t *testing.T) {
	t.Parallel()
	s := &storage{classes: map[string]string{oldPart: "STANDARD", midPart: "", newPart: "STANDARD", manifest: "STANDARD", "p/other.txt": "STANDARD"}}
	b := classed(t, s, "0:STANDARD,30:STANDARD_IA,90:GLACIER_IR")
	if n, err := b.Age(t.Context(), always); err != nil || n != 2 {
		t.Fatalf("%d files, %v", n, err)
	}
	if s.classes[oldPart] != "GLACIER_IR" || s.classes[midPart] != "STANDARD_IA" || s.classes[newPart] != "STANDARD" || s.classes[manifest] != "STANDARD" || len(s.copied) != 2 {
		t.Errorf("%v, copied %v", s.classes, s.copied)
	}
	if n, err := b.Age(t.Context(), always); err != nil || n != 0 || len(s.copied) != 2 {
		t.Errorf("again: %d files, %v, copied %v", n, err, s.copied)
	}
}

func TestAge_StopsBetweenFiles(t *testing.T) {
	t.Parallel()
	s := &storage{classes: map[string]string{oldPart: "STANDARD", midPart: "STANDARD"}}
	b := classed(t, s, "0:GLACIER_IR")
	over, asked := errors.New("the hours are over"), 0
	n, err := b.Age(t.Context(), func() error {
		if asked++; asked == 2 {
			return over
		}
		return nil
	})
	if n != 1 || !errors.Is(err, over) || len(s.copied) != 1 {
		t.Errorf("%d files, %v, copied %v", n, err, s.copied)
	}
}

// One file that the storage does not copy is named, and stops no other. The next look tries it again.
func TestAge_OneRefusedFile(t *testing.T) {
	t.Parallel()
	s := &storage{classes: map[string]string{oldPart: "STANDARD", midPart: "STANDARD", newPart: "STANDARD"}, refuses: midPart}
	b := classed(t, s, "0:GLACIER_IR")
	n, err := b.Age(t.Context(), always)
	var aging *archive.AgingError
	var shelf *archive.ShelfError
	if n != 2 || !errors.As(err, &aging) || aging.All != 1 || aging.Files[0].File != strings.TrimPrefix(midPart, "p/") || !strings.Contains(err.Error(), "InvalidObjectState") || !errors.As(err, &shelf) || shelf.Hint() == "" {
		t.Fatalf("%d files, %v, copied %v", n, err, s.copied)
	}
	s.refuses = ""
	if n, err := b.Age(t.Context(), always); n != 1 || err != nil || s.classes[midPart] != "GLACIER_IR" {
		t.Errorf("again: %d files, %v", n, err)
	}
}

// A busy storage is left alone: no second file is asked for. The next look moves them all.
func TestAge_BusyStorage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
	}{{http.StatusServiceUnavailable, "SlowDown"}, {http.StatusTooManyRequests, "TooManyRequests"}, {http.StatusServiceUnavailable, ""}} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			s := &storage{classes: map[string]string{oldPart: "STANDARD", midPart: "STANDARD", newPart: "STANDARD"}, busy: c.status, code: c.code}
			b := classed(t, s, "0:GLACIER_IR")
			n, err := b.Age(t.Context(), always)
			var aging *archive.AgingError
			var shelf *archive.ShelfError
			if n != 0 || !errors.As(err, &aging) || aging.All != 1 || !errors.As(err, &shelf) || !strings.Contains(err.Error(), "is busy") || !strings.Contains(shelf.Hint(), "wait") {
				t.Errorf("%d files, %v", n, err)
			}
			if s.asked > retries+1 {
				t.Errorf("it was asked %d times", s.asked)
			}
			s.busy = 0
			if n, err := b.Age(t.Context(), always); n != 3 || err != nil {
				t.Errorf("again: %d files, %v", n, err)
			}
		})
	}
}

// A storage that ignores classes would be asked to copy everything each night.
func TestAge_StorageWithoutClasses(t *testing.T) {
	t.Parallel()
	s := &storage{classes: map[string]string{oldPart: "STANDARD", midPart: "STANDARD"}, ignores: true}
	n, err := classed(t, s, "0:GLACIER_IR").Age(t.Context(), always)
	var refused *archive.ShelfError
	if n != 0 || !errors.As(err, &refused) || !strings.Contains(refused.Hint(), "DOCKET_ARCHIVE_CLASSES") || len(s.copied) != 1 {
		t.Errorf("%d files, %v, copied %v", n, err, s.copied)
	}
	if n, err := classed(t, s, "").Age(t.Context(), always); n != 0 || err != nil || len(s.copied) != 1 {
		t.Errorf("without classes: %d files, %v", n, err)
	}
}

func TestPut_ClassOfTheDay(t *testing.T) {
	t.Parallel()
	for classes, want := range map[string]map[string]string{
		"90:GLACIER_IR": {oldPart: "GLACIER_IR", newPart: "", manifest: ""},
		"":              {oldPart: "", newPart: "", manifest: ""},
	} {
		s := &storage{classes: map[string]string{}}
		b := classed(t, s, classes)
		for name := range want {
			if err := b.Put(context.Background(), strings.TrimPrefix(name, "p/"), strings.NewReader("bytes")); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(s.classes, want) {
			t.Errorf("%q: %v, want %v", classes, s.classes, want)
		}
	}
}
