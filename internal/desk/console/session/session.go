// Package session keeps the sessions of the desk's console. A session knows its person, its credential and its end.
//
// The cookie holds 256 random bits and nothing else. A store has only their hash.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"
)

const (
	// Lasts is how long a session lasts at most.
	Lasts = 12 * time.Hour
	// Idle is how long a session lasts without a request.
	Idle = 30 * time.Minute
	// Remembered is how long a logout of the provider is remembered: longer than a login takes, and shorter than [Idle].
	Remembered = 15 * time.Minute
	// touchEvery is how old the last use has to be before a request writes it again. It keeps reading free of writes.
	touchEvery = time.Minute
)

// ErrNone says that there is no such session, or that it is over.
var ErrNone = errors.New("there is no such session")

// ErrUsed says that a login has made a session already.
var ErrUsed = errors.New("the login was used already")

// ID is the SHA-256 of the secret in a cookie.
type ID [sha256.Size]byte

// Kind is the kind of credential that made a session.
type Kind string

// The kinds.
const (
	Token  Kind = "token" // a token of the desk
	OpenID Kind = "oidc"  // a login at an OpenID provider
)

// Origin is where a session by [OpenID] comes from. It is kept so that the provider can end sessions, and so that a
// login is used once. [Store.Find] does not return it.
type Origin struct {
	Subject string // of the person at the provider
	Session string // of the provider; empty if it has none
	Login   []byte // the name of the login; nil: any number of sessions
}

// Session is one login.
type Session struct {
	ID   ID
	Name string // of the person, as in the audit
	Role string // when it was made; a request asks what the role is now
	By   Kind
	// Credential proves which credential made the session. Its form belongs to the maker. The session dies with it.
	Credential                []byte
	CreatedAt, UsedAt, EndsAt time.Time
	Origin                    Origin
}

// Over reports whether the session is too old, or idle for too long.
func (s Session) Over(now time.Time) bool {
	return !now.Before(s.EndsAt) || !now.Before(s.UsedAt.Add(Idle))
}

// Store keeps sessions. Times have microseconds. It is safe for concurrent use.
type Store interface {
	// Create keeps a new session. It also removes sessions that ended before the new one began. A second session of one
	// login is [ErrUsed].
	Create(ctx context.Context, s Session) error
	// Find returns a session that is not over at now, or else [ErrNone].
	Find(ctx context.Context, id ID, now time.Time) (Session, error)
	// Touch notes that a session is used now. One that is over stays so. A time before the last use changes nothing.
	Touch(ctx context.Context, id ID, now time.Time) error
	// End ends a session. Without one it does nothing.
	End(ctx context.Context, id ID) error
	// EndAll ends all sessions of a name, and returns how many rows that were.
	EndAll(ctx context.Context, name string) (int64, error)
	// EndFrom ends the sessions that come from a session of the provider, or without one from a subject. With both it
	// also ends those of the subject of which the provider named no session. It returns how many rows that were. Before it
	// looks for any, it remembers the logout for [Remembered]: a login may make such a session now, also at another desk. It also
	// removes what is over, as Create does: many logouts may come before the next login.
	EndFrom(ctx context.Context, o Origin, issued, now time.Time) (int64, error)
	// Ended reports whether a logout that is remembered ends sessions of this origin that the provider vouched for at issued.
	// One without a session of the provider ends what it vouched for until the logout was issued.
	Ended(ctx context.Context, o Origin, issued, now time.Time) (bool, error)
}

// Secret is the content of a cookie. Its text form is for the cookie alone.
type Secret [32]byte

// NewSecret makes 256 random bits.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// ParseSecret reads the text of a cookie. The error is [ErrNone].
func ParseSecret(text string) (s Secret, err error) {
	bits, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(bits) != len(s) {
		return s, ErrNone
	}
	return Secret(bits), nil
}

// Text is the secret as a cookie holds it.
func (s Secret) Text() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// ID is the name of the session in the store.
func (s Secret) ID() ID { return sha256.Sum256(s[:]) }

// Begin makes a session that begins now.
func Begin(secret Secret, name, role string, by Kind, credential []byte, now time.Time) Session {
	now = now.UTC().Truncate(time.Microsecond)
	return Session{ID: secret.ID(), Name: name, Role: role, By: by, Credential: credential, CreatedAt: now, UsedAt: now, EndsAt: now.Add(Lasts)}
}

// Stale reports whether the last use has to be written again.
func (s Session) Stale(now time.Time) bool { return now.Sub(s.UsedAt) >= touchEvery }
