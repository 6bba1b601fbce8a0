// Package shelf opens the storage of archives: a directory, or a bucket of object storage with the S3 protocol.
package shelf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
	"docket/internal/service/config"
)

// Open opens the storage from the settings. It does not connect. where is a directory, or s3://bucket/prefix.
func Open(where string, s config.Settings) (archive.Shelf, error) {
	rest, ok := strings.CutPrefix(where, "s3://")
	if !ok {
		return archive.Dir(where), nil
	}
	name, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	endpoint, err := url.Parse(s.ArchiveS3Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" || name == "" {
		return nil, &archive.ShelfError{Err: errors.New("the place of the archives is not valid"), Do: "DOCKET_ARCHIVE_TO is a directory or s3://bucket/prefix, DOCKET_ARCHIVE_S3_ENDPOINT a URL with http or https"}
	}
	transport, err := minio.DefaultTransport(endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("prepare the object storage's client: %w", err)
	}
	if s.ArchiveS3CA != "" && endpoint.Scheme == "https" {
		pem, err := os.ReadFile(s.ArchiveS3CA)
		if err != nil {
			return nil, &archive.ShelfError{Err: err, Do: "check DOCKET_ARCHIVE_S3_CA"}
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, &archive.ShelfError{Err: errors.New("DOCKET_ARCHIVE_S3_CA holds no certificates"), Do: "it is a file of PEM blocks"}
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: creds(s), Secure: endpoint.Scheme == "https", Region: s.ArchiveS3Region, Transport: transport, MaxRetries: retries, TrailingHeaders: true,
	})
	if err != nil {
		return nil, &archive.ShelfError{Err: errors.New("the address of the object storage is not valid"), Do: "check DOCKET_ARCHIVE_S3_ENDPOINT"}
	}
	dial := transport.DialContext
	b := &bucket{client: client, transport: transport, name: name, prefix: prefix, classes: s.StorageClasses(), now: time.Now, stall: usualStall}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &prompt{conn, b.stall}, nil
	}
	return b, nil
}

// prompt is a connection whose server has to send something within a time while somebody reads, and to take what is written
// within that time. A reader waits for the answer during the whole of an upload, so its time begins again with each write.
type prompt struct {
	net.Conn
	within time.Duration
}

func (p *prompt) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.within)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p *prompt) Write(b []byte) (int, error) {
	now := time.Now()
	err := errors.Join(p.SetWriteDeadline(now.Add(p.within)), p.SetReadDeadline(now.Add(2*p.within))) // the write tells of a stall first
	if err != nil {
		return 0, err
	}
	n, err := p.Conn.Write(b)
	if err == nil {
		err = p.SetReadDeadline(time.Now().Add(p.within))
	}
	return n, err
}

// creds are those of the settings, else those that AWS or Kubernetes gives the machine.
func creds(s config.Settings) *credentials.Credentials {
	if s.ArchiveS3AccessKey != "" {
		return credentials.NewStaticV4(s.ArchiveS3AccessKey, s.ArchiveS3SecretKey.Reveal(), "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
}

const (
	retries  = 3
	partSize = 16 << 20 // of an upload; as much is kept in memory
	// usualStall is how long the storage may send nothing of an answer, or take nothing of a request. The client itself waits
	// without end.
	usualStall = 2 * time.Minute
)

// bucket is a storage in object storage.
type bucket struct {
	client       *minio.Client
	transport    *http.Transport
	name, prefix string
	classes      nightly.Classes
	now          func() time.Time
	stall        time.Duration // see usualStall
}

func (b *bucket) String() string { return "s3://" + b.name + "/" + b.prefix }

// Put uploads in pieces, each with a checksum that the server verifies. The object appears when all of it is there.
func (b *bucket) Put(ctx context.Context, name string, r io.Reader) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, source{r}, -1, minio.PutObjectOptions{
		PartSize: partSize, NumThreads: 1, ContentType: kind(name), StorageClass: b.class(name), Checksum: minio.ChecksumCRC32C, DisableContentSha256: b.client.EndpointURL().Scheme == "https",
	})
	return failed(ctx, err)
}

// source replaces the error of its reader. The client takes io.ErrUnexpectedEOF for the end, and would store a part
// as the whole.
type source struct{ from io.Reader }

var errSource = errors.New("the input could not be read to its end")

func (s source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) { // io.ErrUnexpectedEOF is not io.EOF
		err = errSource
	}
	return n, err
}

func kind(name string) string {
	switch {
	case strings.HasSuffix(name, ".json"):
		return "application/json"
	case strings.HasSuffix(name, ".parquet"):
		return "application/vnd.apache.parquet"
	case strings.HasSuffix(name, ".started"):
		return "text/plain"
	}
	return "application/gzip"
}

// Get downloads.
func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, failed(ctx, err)
	}
	if _, err := o.Stat(); err != nil { // the request is sent only here
		return nil, errors.Join(b.notGot(ctx, name, err), o.Close())
	}
	return &download{o, ctx}, nil
}

// Range downloads a part, in one request.
func (b *bucket) Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if length <= 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	o := minio.GetObjectOptions{}
	if err := o.SetRange(offset, offset+length-1); err != nil {
		return nil, &archive.ShelfError{Err: errors.New("a part of a file cannot be asked for like that")}
	}
	r, _, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+name, o)
	var said minio.ErrorResponse
	if errors.As(err, &said) && said.StatusCode == http.StatusRequestedRangeNotSatisfiable { // it begins behind the end
		return io.NopCloser(strings.NewReader("")), nil
	}
	if err != nil {
		return nil, b.notGot(ctx, name, err)
	}
	return &download{r, ctx}, nil
}

// notGot is failed for a file that was asked for. S3 denies one that is missing, if the key may not list all of the bucket. The
// listing tells then.
func (b *bucket) notGot(ctx context.Context, name string, err error) error {
	var said minio.ErrorResponse
	if errors.As(err, &said) && said.Code == minio.AccessDenied {
		if names, unlisted := b.List(ctx, name); unlisted == nil && !slices.Contains(names, name) {
			return fs.ErrNotExist
		}
	}
	return failed(ctx, err)
}

// download is a file, or a part of one, on its way. Its errors quote no server.
type download struct {
	io.ReadCloser
	ctx context.Context
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = failed(d.ctx, err)
	}
	return n, err
}

// List returns the names that begin with prefix.
func (b *bucket) List(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if we stop early
	var names []string
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, failed(ctx, o.Err)
		}
		if name := strings.TrimPrefix(o.Key, b.prefix); archive.Lists(prefix, name) {
			names = append(names, name)
		}
	}
	if err := ctx.Err(); err != nil { // the client then ends a listing early, and returns no error
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// Remove deletes an object.
func (b *bucket) Remove(ctx context.Context, name string) error {
	err := failed(ctx, b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close closes idle connections.
func (b *bucket) Close() { b.transport.CloseIdleConnections() }

// failed replaces an error, because a server's text may quote the request.
func failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var shelf *archive.ShelfError
	if errors.As(err, &shelf) {
		return err
	}
	if errors.Is(err, errSource) {
		return errSource
	}
	var said minio.ErrorResponse
	if !errors.As(err, &said) {
		return &archive.ShelfError{Err: fmt.Errorf("the object storage cannot be reached, or the connection was lost: %s", how(err)), Do: "check DOCKET_ARCHIVE_S3_ENDPOINT, the network and, with https, DOCKET_ARCHIVE_S3_CA; then run it again"}
	}
	switch said.Code {
	case minio.NoSuchKey:
		return fs.ErrNotExist
	case minio.NoSuchBucket:
		return &archive.ShelfError{Err: errors.New("the object storage has no such bucket"), Do: "make it, or check DOCKET_ARCHIVE_TO and DOCKET_ARCHIVE_S3_REGION"}
	case "SignatureDoesNotMatch", "InvalidAccessKeyId", minio.AccessDenied, "InvalidToken", "ExpiredToken":
		return &archive.ShelfError{Err: fmt.Errorf("the object storage refuses: %s", said.Code), Do: "check DOCKET_ARCHIVE_S3_ACCESS_KEY and its secret; docs/archive.md lists the rights that are needed"}
	}
	if busy(said) {
		return &archive.ShelfError{Err: fmt.Errorf("the object storage is busy: %s, HTTP status %d", word(said.Code), said.StatusCode), Do: "wait: the next run tries again; if it lasts, archive at a quieter hour, or raise the limits of the storage"}
	}
	return &archive.ShelfError{Err: fmt.Errorf("the object storage refuses: %s, HTTP status %d", word(said.Code), said.StatusCode), Do: "check DOCKET_ARCHIVE_S3_ACCESS_KEY, the rights of that key (docs/archive.md) and the storage's own log"}
}

// busy reports whether the storage asks for fewer requests. Another request would meet the same.
func busy(said minio.ErrorResponse) bool {
	switch said.Code {
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "RequestLimitExceeded", "TooManyRequests", "Throttling", "ThrottlingException", "RequestThrottled":
		return true
	}
	return said.StatusCode == http.StatusServiceUnavailable || said.StatusCode == http.StatusTooManyRequests
}

// word returns a code if it has only letters and digits.
func word(code string) string {
	code = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, code)
	if code == "" || len(code) > 60 {
		return "no code"
	}
	return code
}

// how names the kind of a failure.
func how(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &verify):
		return "its certificate is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ended early"
	}
	return "no connection"
}
