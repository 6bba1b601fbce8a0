package fallback

import (
	"errors"
	"fmt"
)

var (
	// ErrFull is returned by Append when the lines do not fit below MaxBytes. Nothing was written; the caller holds.
	ErrFull = errors.New("spool is full (DOCKET_SPOOL_MAX_BYTES)")
	// ErrLocked is returned by Open when another process has the directory.
	ErrLocked = errors.New("spool directory is in use by another process (give each program its own DOCKET_SPOOL_DIR)")
	// ErrUnsafeDir is returned by Open for a path that is not a directory, and for a symlink. It is also returned for
	// a directory of another user, and for one that others may write to.
	ErrUnsafeDir = errors.New("spool directory is not safe to use (it must be a real directory, owned by this user, mode 0700; a sub-directory of the volume will do)")
	// ErrTooLong is returned by Append for a line that recovery would refuse to read.
	ErrTooLong = errors.New("record is too long for the spool")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("spool is closed")
)

// PublishError is returned by Recover when not every line of a file was acknowledged. The file stays. Its text never
// quotes the cause, which may contain a server's text. errors.Is and errors.As find the cause.
type PublishError struct {
	File   string // name of the data file
	Failed int    // records that were not acknowledged
	Tried  int    // records that were sent to the publisher
	cause  error
}

// Error names the file and how many of its records failed.
func (e *PublishError) Error() string {
	return fmt.Sprintf("publish records of spool file %s: %d of %d not acknowledged", e.File, e.Failed, e.Tried)
}

// Unwrap returns the error of the first record that failed.
func (e *PublishError) Unwrap() error { return e.cause }

// fault says why a data file is broken, without text from the file. Empty means whole.
type fault string

const (
	faultEmpty     fault = "file is empty"
	faultHeader    fault = "gzip header is not readable"
	faultTruncated fault = "gzip stream is truncated"
	faultStream    fault = "gzip stream is damaged"
	faultChecksum  fault = "gzip checksum does not match"
	faultTrailing  fault = "bytes follow the gzip stream"
	faultLine      fault = "a line is not a record"
	faultLineLong  fault = "a line is longer than the limit"
	faultInflated  fault = "the file inflates beyond the limit"
	faultCount     fault = "number of lines differs from the meta file"
	faultSum       fault = "sha256 differs from the meta file"
	faultSize      fault = "size differs from the meta file"
)
