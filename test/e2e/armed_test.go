//go:build integration

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/service/failpoint"
)

// buildArmed builds the programs with failpoints, once and only for a test that needs them.
var buildArmed = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-tags", "failpoints", "-o", filepath.Join(bin, "failpoints")+"/", "docket/cmd/consumer", "docket/cmd/parking-replayer")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs with failpoints: %w\n%s", err, out)
	}
	return nil
})

// withFailpoints returns the name, below bin, of a program of the build with failpoints.
func withFailpoints(t *testing.T, program string) string {
	t.Helper()
	if err := buildArmed(); err != nil {
		t.Fatal(err)
	}
	return "failpoints/" + program
}

// armed starts a program of the build with failpoints.
func (s *system) armed(name, spec string, env ...string) *process {
	s.t.Helper()
	return s.start(withFailpoints(s.t, name), append(env, failpoint.Variable+"="+spec))
}

// tripped is what a program says before it does what a point is armed with.
func tripped(point failpoint.Point, n int, action string) string {
	return fmt.Sprintf(`{"failpoint":%q,"n":%d,"action":%q}`, string(point), n, action)
}

// awaitTrip waits until the program came by the point.
func (p *process) awaitTrip(point failpoint.Point, n int, action string) {
	p.t.Helper()
	eventually(p.t, patience, fmt.Sprintf("%s came by %s", p.name, point), func() error {
		if !strings.Contains(p.out.String(), tripped(point, n, action)) {
			return fmt.Errorf("it did not")
		}
		return nil
	})
}

// awaitKill waits until the program was killed at the point, by its own hand and nowhere else.
func (p *process) awaitKill(point failpoint.Point, n int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s did not come by %s for the %d. time", p.name, point, n)
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		p.t.Fatalf("%s ended with %v, not by SIGKILL", p.name, p.cmd.ProcessState)
	}
	if !strings.Contains(p.out.String(), tripped(point, n, "kill")) {
		p.t.Fatalf("%s was not killed at %s:\n%s", p.name, point, tail(p.out.String(), 5))
	}
}

// bury takes the members of a group out of it, as the brokers do by themselves when the session timeout is over. Nobody
// alive may be in it.
func (s *system) bury(group string) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	described, err := kadm.NewClient(cl).DescribeGroups(s.t.Context(), group)
	if err != nil {
		s.t.Fatalf("describe group %s: %v", group, err)
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, m := range described[group].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		req.Members = append(req.Members, member)
	}
	if len(req.Members) == 0 {
		return
	}
	if _, err := req.RequestWith(s.t.Context(), cl); err != nil {
		s.t.Fatalf("take the dead out of group %s: %v", group, err)
	}
}

// refuse makes the brokers take no record for a topic, until accept. A topic that is missing would be waited for at the start.
func (s *system) refuse(topic string) { s.largest(topic, "1") }

// accept makes the brokers take records for a topic again.
func (s *system) accept(topic string) { s.largest(topic, "1048588") }

// largest sets the size of the largest set of records that a topic takes, in bytes.
func (s *system) largest(topic, bytes string) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	done, err := kadm.NewClient(cl).AlterTopicConfigs(s.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &bytes}}, topic)
	if err == nil {
		_, err = done.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if err != nil {
		s.t.Fatalf("set max.message.bytes of %s: %v", topic, err)
	}
}

// caughtUp waits until the consumers have committed everything, whatever became of it.
func (s *system) caughtUp() {
	s.t.Helper()
	eventually(s.t, patience, "everything in the source is committed", func() error {
		lag, _, err := s.places.Lag(s.t.Context())
		if err != nil || lag > 0 {
			return fmt.Errorf("lag %d, %v", lag, err)
		}
		return nil
	})
}

// spool is the directory that the consumers of a test share, one after another.
func (s *system) spool() string { return filepath.Join(s.dir, "spool") }

func readFile(t *testing.T, program string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(bin, program))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRelease_HasNoFailpoints(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"consumer", "parking-replayer"} {
		plain, armed := readFile(t, name), readFile(t, withFailpoints(t, name))
		for _, trace := range []string{failpoint.Variable, "docket/internal/service/failpoint", string(failpoint.SpoolTmpHalfWritten)} {
			if strings.Contains(plain, trace) {
				t.Errorf("%s holds %q", name, trace)
			}
			if !strings.Contains(armed, trace) {
				t.Errorf("the %s that is built with the tag does not hold %q: this test sees nothing", name, trace)
			}
		}
	}
}
