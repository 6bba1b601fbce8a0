package shelf

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/archive"
	"docket/internal/service/config"
)

// served is a bucket of a server that a test makes up.
func served(t *testing.T, serve http.HandlerFunc) *bucket {
	t.Helper()
	return bucketOf(t, httptest.NewServer(serve))
}

func bucketOf(t *testing.T, server *httptest.Server) *bucket {
	t.Helper()
	opened, err := Open("s3://bucket/p", config.Settings{ArchiveS3Endpoint: server.URL, ArchiveS3Region: "us-east-1", ArchiveS3AccessKey: "key", ArchiveS3SecretKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	b := opened.(*bucket)
	t.Cleanup(func() { b.Close(); server.CloseClientConnections(); server.Close() })
	return b
}

// A storage that sends a part of a file, and then nothing, without an end of the connection, fails a reading. Nobody would end an
// archive in the night that waits for it.
func TestBucket_StorageThatStalls(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	b := served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
		w.Header().Set("Content-Length", "1000")
		if r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusPartialContent)
		}
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(make([]byte, 10))
		w.(http.Flusher).Flush()
		<-end
	})
	defer close(end)
	b.stall = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, open := range map[string]func() (io.ReadCloser, error){
		"a file":       func() (io.ReadCloser, error) { return b.Get(ctx, "n") },
		"a part of it": func() (io.ReadCloser, error) { return b.Range(ctx, "n", 0, 1000) },
	} {
		r, err := open()
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = io.Copy(io.Discard, r)
		if said, is := errors.AsType[*archive.ShelfError](err); !is || !strings.Contains(said.Error(), "no answer in time") {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// short is a listener whose connections keep little that nobody reads.
type short struct{ net.Listener }

func (s short) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = errors.Join(err, tcp.SetReadBuffer(4<<10))
	}
	return conn, err
}

// A storage that takes nothing of an upload, without an end of the connection, fails it.
func TestBucket_UploadThatStalls(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			<-end
			return
		}
		_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>p/n</Key><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
	}))
	server.Listener = short{server.Listener}
	server.Start()
	b := bucketOf(t, server)
	defer close(end)
	b.stall = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := b.Put(ctx, "n", bytes.NewReader(make([]byte, partSize-1)))
	if said, is := errors.AsType[*archive.ShelfError](err); !is || !strings.Contains(said.Error(), "no answer in time") {
		t.Errorf("%v", err)
	}
}

// Storages that let a key list only some names refuse a file that is missing as one that may not be read. A listing tells.
func TestBucket_MissingFileIsRefused(t *testing.T) {
	t.Parallel()
	there := []string{"p/there"}
	b := served(t, func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.URL.Path, "/bucket/")
		if r.URL.Query().Has("list-type") {
			_, _ = io.WriteString(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><IsTruncated>false</IsTruncated>`)
			for _, key := range there {
				if strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
					_, _ = io.WriteString(w, `<Contents><Key>`+key+`</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag><Size>5</Size></Contents>`)
				}
			}
			_, _ = io.WriteString(w, `</ListBucketResult>`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Key>`+key+`</Key></Error>`)
		}
	})
	for _, name := range []string{"there", "missing"} {
		_, err := b.Get(t.Context(), name)
		_, other := b.Range(t.Context(), name, 0, 5)
		missing := !slices.Contains(there, "p/"+name)
		if errors.Is(err, fs.ErrNotExist) != missing || errors.Is(other, fs.ErrNotExist) != missing {
			t.Errorf("%s: %v; a part of it: %v", name, err, other)
		}
	}
}

// A storage that stops in the middle of another answer, as of a listing, fails the run, too.
func TestBucket_AnswerThatStalls(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	b := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case r.Method == http.MethodPost && query.Has("uploads"):
			_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>p/n</Key><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
			return
		case r.Method == http.MethodPut:
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"x"`)
			return
		}
		_, _ = io.WriteString(w, `<?xml version="1.0"?>`)
		w.(http.Flusher).Flush()
		<-end
	})
	defer close(end)
	b.stall = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, ask := range map[string]func() error{
		"a listing":            func() error { _, err := b.List(ctx, "n"); return err },
		"the end of an upload": func() error { return b.Put(ctx, "n", bytes.NewReader(make([]byte, 100))) },
	} {
		err := ask()
		if said, is := errors.AsType[*archive.ShelfError](err); !is || !strings.Contains(said.Error(), "no answer in time") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A transfer may be slow, and its reader may work on what it has. Neither is a stall.
func TestPrompt_SlowIsNoStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		conn := &prompt{near, usualStall}
		defer conn.Close()
		answer := make(chan error, 1)
		go func() { // as the transport does, also before the request
			_, err := io.ReadFull(conn, make([]byte, 10))
			answer <- err
		}()
		go func() {
			time.Sleep(usualStall / 2)
			for range 5 {
				time.Sleep(usualStall - time.Second)
				_, _ = io.ReadFull(far, make([]byte, 100))
			}
			for range 10 {
				time.Sleep(usualStall - time.Second)
				_, _ = far.Write([]byte{1})
			}
			time.Sleep(time.Hour) // nobody reads meanwhile
			_, _ = far.Write([]byte{1})
		}()
		time.Sleep(usualStall / 2)
		for range 5 {
			if _, err := conn.Write(make([]byte, 100)); err != nil {
				t.Fatal("write:", err)
			}
		}
		if err := <-answer; err != nil {
			t.Fatal("read:", err)
		}
		time.Sleep(time.Hour - time.Minute)
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Error("read after an hour:", err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("read without an answer:", err)
		}
		if _, err := conn.Write([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("write that nobody takes:", err)
		}
	})
}
