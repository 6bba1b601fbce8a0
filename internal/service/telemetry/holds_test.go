package telemetry

import (
	"fmt"
	"slices"
	"testing"

	"docket/internal/consumer/pipeline"
)

// told are the codes and hints of the lines with this message.
func (b *bundle) told(message string) (all []string) {
	for _, l := range b.lines() {
		if l["message"] == message {
			all = append(all, fmt.Sprint(l[KeyCode], " ", l[KeyHint]))
		}
	}
	return all
}

// The next fault to repair is told as soon as the first partition finds it, though others still hold for the fault
// before.
func TestHolding_OneLineForEachRepair(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	refused := func(code, hint string) pipeline.Hold {
		return pipeline.Hold{Reason: pipeline.ReasonDatabaseRefuses, Code: code, Hint: hint}
	}
	password, unknown, expired := refused("28P01", "check the password"), refused("tls", "not signed"), refused("tls", "expired")
	var release []func()
	for p := range int32(3) {
		release = append(release, b.Held("t", p, password))
	}
	for _, next := range []pipeline.Hold{unknown, expired} {
		for p := range int32(3) {
			release[p]()
			release[p] = b.Held("t", p, next)
		}
	}
	for _, done := range release {
		done()
	}
	if got, want := b.told("hold began"), []string{"28P01 check the password", "tls not signed", "tls expired"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	if n := len(b.told("hold ended")); n != 1 {
		t.Errorf("it is told %d times that it is over", n)
	}
}

// However an outage looks from each partition, it is one.
func TestHolding_OneLineForAllCodes(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	for p, code := range []string{"57P03", "08006", "deadline"} {
		defer b.Held("t", int32(p), pipeline.Hold{Reason: pipeline.ReasonDatabaseAway, Code: code, Hint: "wait"})()
	}
	if got := b.told("hold began"); len(got) != 1 {
		t.Errorf("lines %q", got)
	}
}

// A hold that comes and goes in a storm leaves lines out, and never the first ones of another reason or code.
func TestHolding_StormHidesNoOtherReason(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	away := pipeline.Hold{Reason: pipeline.ReasonDatabaseAway, Code: "57P03", Hint: "wait"}
	refused := pipeline.Hold{Reason: pipeline.ReasonDatabaseRefuses, Code: "3D000", Hint: "the database does not exist"}
	for range 3 * burst {
		b.Held("t", 0, away)()
	}
	b.Held("t", 0, refused)()
	refused.Code = "28P01"
	b.Held("t", 0, refused)()
	got := b.told("hold began")
	if len(got) != burst+2 || got[burst] != "3D000 the database does not exist" || got[burst+1] != "28P01 the database does not exist" {
		t.Errorf("%d lines: %q", len(got), got)
	}
	if ended := b.told("hold ended"); len(ended) != burst+2 {
		t.Errorf("%d lines of ends", len(ended))
	}
}
