package fallback

import (
	"errors"
	"fmt"
	"time"

	"docket/internal/record/envelope"
)

// Policy says what Append does when the spool is full.
type Policy int

const (
	// Hold refuses with ErrFull: the caller keeps its records and waits.
	Hold Policy = iota
	// Evict removes the oldest files to make room, which loses their records.
	Evict
)

// String returns "hold" or "evict", as DOCKET_SPOOL_ON_FULL spells them.
func (p Policy) String() string {
	switch p {
	case Hold:
		return "hold"
	case Evict:
		return "evict"
	}
	return fmt.Sprintf("policy(%d)", int(p))
}

// UnmarshalText reads "hold" or "evict"; anything else is an error.
func (p *Policy) UnmarshalText(text []byte) error {
	switch string(text) {
	case "hold":
		*p = Hold
	case "evict":
		*p = Evict
	default:
		return errors.New(`want "hold" or "evict"`)
	}
	return nil
}

// Defaults of Config, used wherever its field is zero.
const (
	DefaultMaxBytes      int64 = 1 << 30
	DefaultRecoverEvery        = time.Minute
	DefaultScanLimit           = 1000
	DefaultOversizeEvery       = time.Hour
	DefaultInstance            = "docket"
)

// Config holds the settings of a spool. Zero values mean the default, except for Dir.
type Config struct {
	// Dir is the directory, DOCKET_SPOOL_DIR. It belongs to one process. Required.
	Dir string
	// Instance is the middle part of every file name. Characters outside [A-Za-z0-9.-] become "-". Default "docket".
	Instance string
	// MaxBytes limits data and meta files together, DOCKET_SPOOL_MAX_BYTES. Files in corrupt/ do not count. Default 1
	// GiB.
	MaxBytes int64
	// MaxAge is the age at which the oldest file raises an alarm and, with Evict, is dropped: DOCKET_SPOOL_MAX_AGE.
	// Default 0: never.
	MaxAge time.Duration
	// OnFull is Hold or Evict, DOCKET_SPOOL_ON_FULL. Default Hold.
	OnFull Policy
	// RecoverEvery is the pause between two files if live traffic is never idle, and the longest pause after
	// failures. Default 1 minute.
	RecoverEvery time.Duration
	// ScanLimit limits the directory entries of one scan. Default 1,000.
	ScanLimit int
	// OversizeEvery is the pause between two tries of oversize files, besides one after Open. Default 1 hour.
	OversizeEvery time.Duration
	// Keys sign published records, because a line may be older than the newest key. Default: none.
	Keys envelope.Keys
}

// Validate returns all complaints about c, joined, or nil.
func (c Config) Validate() error {
	var errs []error
	complain := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	complain(c.Dir == "", "spool: Dir is empty")
	complain(c.MaxBytes < 0, "spool: MaxBytes is negative")
	complain(c.MaxAge < 0, "spool: MaxAge is negative")
	complain(c.OnFull != Hold && c.OnFull != Evict, "spool: OnFull is neither Hold nor Evict")
	complain(c.RecoverEvery < 0, "spool: RecoverEvery is negative")
	complain(c.ScanLimit < 0, "spool: ScanLimit is negative")
	complain(c.OversizeEvery < 0, "spool: OversizeEvery is negative")
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	orDefault(&c.MaxBytes, DefaultMaxBytes)
	orDefault(&c.RecoverEvery, DefaultRecoverEvery)
	orDefault(&c.ScanLimit, DefaultScanLimit)
	orDefault(&c.OversizeEvery, DefaultOversizeEvery)
	c.Instance = sanitise(c.Instance)
	return c
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
