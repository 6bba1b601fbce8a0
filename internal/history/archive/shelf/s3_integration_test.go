//go:build integration

package shelf

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	url2 "net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/service/config"
	"docket/internal/testkit/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func settings(t *testing.T, s *testenv.S3Server, more ...string) config.Settings {
	t.Helper()
	set, _, err := config.LoadWith(config.Desk, append([]string{
		"DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable", "DOCKET_ARCHIVE_S3_ENDPOINT=" + s.URL, "DOCKET_ARCHIVE_S3_ACCESS_KEY=" + s.AccessKey, "DOCKET_ARCHIVE_S3_SECRET_KEY=" + s.SecretKey,
	}, more...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func opened(t *testing.T, where string, s config.Settings) archive.Shelf {
	t.Helper()
	shelf, err := Open(where, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shelf.(*bucket).Close)
	return shelf
}

func TestBucket_PutAndGet(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	shelf := opened(t, "s3://days/a/b/", settings(t, server))
	large := make([]byte, 2*partSize+12345) // in three pieces
	_, _ = rand.NewChaCha8([32]byte{1}).Read(large)
	for name, value := range map[string][]byte{"decision_logs-1": large, "decision_logs-2": []byte("x"), "other": nil} {
		if err := shelf.Put(t.Context(), name, bytes.NewReader(value)); err != nil {
			t.Fatal(name, err)
		}
		r, err := shelf.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, value) {
			t.Fatalf("%s: %d bytes of %d, %v", name, len(got), len(value), err)
		}
	}
	if names, err := shelf.List(t.Context(), "decision_logs-"); err != nil || !slices.Equal(names, []string{"decision_logs-1", "decision_logs-2"}) {
		t.Errorf("%v, %v", names, err)
	}
	for range 2 {
		if err := shelf.Remove(t.Context(), "decision_logs-1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := shelf.Get(t.Context(), "decision_logs-1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// counted passes a connection on and counts what the server sent.
func counted(t *testing.T, to string) (url string, received *atomic.Int64) {
	t.Helper()
	target, err := url2.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	received = &atomic.Int64{}
	pass := &httputil.ReverseProxy{}
	pass.Rewrite = func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host } // the signed Host stays
	pass.ModifyResponse = func(r *http.Response) error {
		r.Body = &counting{r.Body, received}
		return nil
	}
	server := httptest.NewServer(pass)
	t.Cleanup(server.Close)
	return server.URL, received
}

type counting struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func TestBucket_RangeReadsAPart(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	through, received := counted(t, server.URL)
	shelf := opened(t, "s3://days/a", settings(t, server, "DOCKET_ARCHIVE_S3_ENDPOINT="+through))
	large := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(large)
	name := archive.Folder("decision_logs", archive.Day{Time: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}) + "decision_logs-1.parquet"
	if err := shelf.Put(t.Context(), name, bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	folder := name[:strings.LastIndex(name, "/")+1]
	for prefix, want := range map[string]int{"": 0, "decision_logs": 0, folder: 1, archive.Folders("decision_logs"): 1, folder + "decision_logs-2": 0} {
		if names, err := shelf.List(t.Context(), prefix); err != nil || len(names) != want || want > 0 && names[0] != name {
			t.Errorf("%q: %v, %v", prefix, names, err)
		}
	}
	received.Store(0)
	p := make([]byte, 1000)
	for _, at := range []int64{0, 54_321, 1<<20 - 1000} {
		if err := archive.At(shelf, archive.File{Name: name}).ReadAt(t.Context(), p, at); err != nil || !bytes.Equal(p, large[at:at+1000]) {
			t.Errorf("%d: %v", at, err)
		}
	}
	if n := received.Load(); n != 3000 {
		t.Errorf("%d bytes came for 3000", n)
	}
	if err := archive.At(shelf, archive.File{Name: name}).ReadAt(t.Context(), p, 1<<20-999); err == nil {
		t.Error("a part behind the end was read")
	}
	if _, err := shelf.Range(t.Context(), "missing", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestBucket_ErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	closed, err := testenv.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ where, set, said string }{
		"secret": {"s3://days/x", "DOCKET_ARCHIVE_S3_SECRET_KEY=marked-secret-of-the-test", "SignatureDoesNotMatch"},
		"key":    {"s3://days/x", "DOCKET_ARCHIVE_S3_ACCESS_KEY=nobody", "refuses"},
		"bucket": {"s3://nights/x", "DOCKET_LOG_LEVEL=info", "no such bucket"},
		"away":   {"s3://days/x", "DOCKET_ARCHIVE_S3_ENDPOINT=http://" + closed, "cannot be reached"},
	} {
		shelf := opened(t, c.where, settings(t, server, c.set))
		_, listing := shelf.List(t.Context(), "")
		for _, err := range []error{shelf.Put(t.Context(), "n", strings.NewReader("marked-payload")), listing} {
			told := (*archive.ShelfError)(nil)
			if !errors.As(err, &told) || !strings.Contains(err.Error(), c.said) || told.Hint() == "" || strings.Contains(err.Error()+told.Hint(), "marked") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// cut is a connection to the server that ends for good after this many sent bytes.
func cut(t *testing.T, to string, after int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		left := after
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err == nil && left > 0 {
				back := make(chan struct{})
				go func() { _, _ = io.Copy(in, out); _ = in.Close(); close(back) }()
				n, _ := io.CopyN(out, in, left)
				left -= n
				_ = out.Close()
				_ = in.Close()
				<-back
				continue
			}
			_ = in.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestBucket_CutUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	large := make([]byte, 2*partSize+1)
	way := cut(t, strings.TrimPrefix(server.URL, "http://"), partSize+partSize/2)
	s := settings(t, server, "DOCKET_ARCHIVE_S3_ENDPOINT="+way)
	err := opened(t, "s3://days/x", s).Put(t.Context(), "n", bytes.NewReader(large))
	if told := (*archive.ShelfError)(nil); !errors.As(err, &told) {
		t.Fatalf("%v", err)
	}
	shelf := opened(t, "s3://days/x", settings(t, server))
	if names, err := shelf.List(t.Context(), ""); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	if err := shelf.Put(t.Context(), "n", bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(server.Dir, "days", "x", "n")); err != nil || info.Size() != int64(len(large)) {
		t.Errorf("%v, %v", info, err)
	}
	broken := io.MultiReader(bytes.NewReader(large), iotest{}) // reading fails in the middle
	if err := shelf.Put(t.Context(), "m", broken); err == nil {
		t.Error("half of it was taken for whole")
	}
	if _, err := shelf.Get(t.Context(), "m"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

type iotest struct{}

func (iotest) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The server of the tests keeps no storage classes, as many do not. The first file tells it, and all files stay as they were.
func TestBucket_AgeWithoutClasses(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "aging")
	shelf := opened(t, "s3://aging/p", settings(t, server, "DOCKET_ARCHIVE_TO=s3://aging/p", "DOCKET_ARCHIVE_CLASSES=0:STANDARD_IA"))
	names := []string{strings.TrimPrefix(oldPart, "p/"), strings.TrimPrefix(newPart, "p/"), strings.TrimPrefix(manifest, "p/")}
	for _, name := range names {
		if err := shelf.Put(t.Context(), name, strings.NewReader("rows of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	n, err := shelf.(archive.Aging).Age(t.Context(), always)
	var aging *archive.AgingError
	if n != 0 || !errors.As(err, &aging) || aging.All != 1 || aging.Files[0].File == "" || !strings.Contains(err.Error(), "keeps no storage class") {
		t.Errorf("%d files, %v", n, err)
	}
	for _, name := range names {
		r, err := shelf.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil || string(got) != "rows of "+name {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
