package kafka

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Login holds the settings for SASL with a password.
type Login struct {
	Mechanism string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; anything else: no login
	User      string
	// Password is called at every connection, and when a broker asks for the login again (connections.max.reauth.ms).
	// If it also returns an error, the error is logged and the returned password is used.
	Password func() (string, error)
}

// mechanism returns the login for one client. It logs passwords that cannot be read.
func (l Login) mechanism(t *changeLog) sasl.Mechanism {
	password := func() string {
		p, err := l.Password()
		t.say("kafka password not reloaded", err)
		return p
	}
	switch l.Mechanism {
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: l.User, Pass: password()}, nil
		})
	case "SCRAM-SHA-256":
		return quietMechanism{scram.Sha256(func(context.Context) (scram.Auth, error) {
			return scram.Auth{User: l.User, Pass: password()}, nil
		})}
	case "SCRAM-SHA-512":
		return quietMechanism{scram.Sha512(func(context.Context) (scram.Auth, error) {
			return scram.Auth{User: l.User, Pass: password()}, nil
		})}
	}
	return nil
}

// quietMechanism is a mechanism whose errors quote nothing. Errors of SCRAM contain the broker's answer and the signature
// made from the password.
type quietMechanism struct{ sasl.Mechanism }

func (d quietMechanism) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := d.Mechanism.Authenticate(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	return quietLogin{session}, first, nil
}

type quietLogin struct{ sasl.Session }

func (d quietLogin) Challenge(answer []byte) (done bool, next []byte, err error) {
	if done, next, err = d.Session.Challenge(answer); err != nil {
		return false, nil, errLoginAnswer
	}
	return done, next, nil
}

const codeLoginAnswer = "login_answer"

var errLoginAnswer = errors.New("the answer to the login is not that of a broker that knows the password (" + codeLoginAnswer + ")")

const loginAnswerHint = "the server at that address does not know the password, or is not a broker: check DOCKET_KAFKA_BROKERS, then the password"

// changeLog logs an error of a file when it changes, not each time that it occurs.
type changeLog struct {
	logger kgo.Logger

	mu   sync.Mutex
	last string
}

func (t *changeLog) say(msg string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	t.mu.Lock()
	changed := text != t.last
	t.last = text
	t.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		t.logger.Log(kgo.LogLevelWarn, msg, "err", text, "hint", "correct the file; the last readable one stays in use")
	default:
		t.logger.Log(kgo.LogLevelWarn, "kafka credentials became readable")
	}
}
