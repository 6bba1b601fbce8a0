package shelf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"docket/internal/history/archive"
)

// paged is a listing of names, two on a page. answer may take a page over.
func paged(names []string, answer func(w http.ResponseWriter, page int) bool) http.HandlerFunc {
	const size = 2
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("location") {
			_, _ = io.WriteString(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east-1</LocationConstraint>`)
			return
		}
		page, _ := strconv.Atoi(r.URL.Query().Get("continuation-token")) // the first page has none
		if answer != nil && answer(w, page) {
			return
		}
		end := min((page+1)*size, len(names))
		_, _ = fmt.Fprintf(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><IsTruncated>%t</IsTruncated>`, end < len(names))
		if end < len(names) {
			_, _ = fmt.Fprintf(w, `<NextContinuationToken>%d</NextContinuationToken>`, page+1)
		}
		for _, name := range names[page*size : end] {
			_, _ = fmt.Fprintf(w, `<Contents><Key>p/%s</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag><Size>5</Size></Contents>`, name)
		}
		_, _ = io.WriteString(w, `</ListBucketResult>`)
	}
}

var pagedNames = []string{"d-1", "d-2", "d-3", "d-4", "d-5"}

func TestBucket_ListsEachPage(t *testing.T) {
	t.Parallel()
	b := served(t, paged(pagedNames, nil))
	if got, err := b.List(t.Context(), "d-"); err != nil || !slices.Equal(got, pagedNames) {
		t.Errorf("%q, %v", got, err)
	}
}

// A listing that is not whole is an error. A short one would hide archives.
func TestBucket_PageThatFails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"refused": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code></Error>`)
		},
		"cut off": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated><Contents><Key>p/d-3</Key>`)
		},
		"connection lost": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated><Contents><Key>p/d-3</Key></Contents>`)
		},
		"no place of the next": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><IsTruncated>true</IsTruncated></ListBucketResult>`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := served(t, paged(pagedNames, func(w http.ResponseWriter, page int) bool {
				if page == 1 {
					answer(w)
				}
				return page == 1
			}))
			got, err := b.List(t.Context(), "d-")
			if said := (*archive.ShelfError)(nil); len(got) > 0 || !errors.As(err, &said) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A listing whose time ends is an error, also before its first page, and between two pages.
func TestBucket_ListingEndsWithItsTime(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	b := served(t, paged(pagedNames, nil))
	if got, err := b.List(ended, "d-"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended before: %q, %v", got, err)
	}
	for range 20 { // the client sees the end at different moments
		ctx, cancel := context.WithCancel(t.Context())
		b := served(t, paged(pagedNames, func(_ http.ResponseWriter, page int) bool {
			if page == 1 {
				cancel()
			}
			return false
		}))
		if got, err := b.List(ctx, "d-"); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended between: %q, %v", got, err)
		}
		cancel()
	}
}
