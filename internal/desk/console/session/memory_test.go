package session_test

import (
	"testing"

	"go.uber.org/goleak"

	"docket/internal/desk/console/session"
	"docket/internal/testkit/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory_Suite(t *testing.T) {
	t.Parallel()
	sessiontest.Suite(t, &session.Memory{})
}

func TestSecret_TextIsReadBack(t *testing.T) {
	t.Parallel()
	s := session.NewSecret()
	if s == session.NewSecret() {
		t.Fatal("two secrets are equal")
	}
	if back, err := session.ParseSecret(s.Text()); err != nil || back != s {
		t.Fatal(back, err)
	}
	for _, text := range []string{"", "x", s.Text() + "A", s.Text()[:42], "!" + s.Text()[1:]} {
		if _, err := session.ParseSecret(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
