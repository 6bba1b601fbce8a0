//go:build integration

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	profiledName      = "Docket, empty table, while it writes a profile"
	profiledAgainName = "Docket, all there already, while it writes a profile"
)

// profile writes Go's own CPU profile of a drain into the empty table, and of one in which every row is there. The page has the
// functions that took and allocated most in the first.
func (b *bench) profile(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	bin := filepath.Join(b.dir, "profiled", "consumer") // docket, by one of its other names
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "nodemo,profiled", "-o", bin, "docket/cmd/docket")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build docket with profiles: %w", err)
	}
	return b.as(edition{bin, b.dsn}, func() error {
		first, second := &profiler{dir: filepath.Join(b.dir, "profile-1")}, &profiler{dir: filepath.Join(b.dir, "profile-2")}
		for _, p := range []*profiler{first, second} {
			if err := os.Mkdir(p.dir, 0o700); err != nil {
				return fmt.Errorf("make a folder for a profile: %w", err)
			}
		}
		n := int64(t.decisions)
		for _, d := range []struct {
			name string
			load load
		}{
			{profiledName, load{topic: t, probe: first, settings: first.settings()}},
			{profiledAgainName, load{topic: t, homes: map[string]int64{"duplicate": n}, filled: true, from: n, probe: second, settings: second.settings()}},
		} {
			run, err := b.drained(ctx, d.load)
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			b.say("%-50s %s", d.name, run)
			b.keep(d.name, run)
		}
		out, err := pprof(ctx, "-proto", "-output", b.Profile, filepath.Join(first.dir, "cpu"), filepath.Join(second.dir, "cpu"))
		if err != nil {
			return err
		}
		b.say("%s", out)
		for _, args := range [][]string{{"-top", "-nodecount=60"}, {"-top", "-cum", "-nodecount=90"}} {
			if out, err = pprof(ctx, append(args, filepath.Join(first.dir, "cpu"))...); err != nil {
				return err
			}
			b.tables = append(b.tables, "```\n"+out+"```\n")
		}
		if out, err = pprof(ctx, "-top", "-sample_index=alloc_space", "-nodecount=25", filepath.Join(first.dir, "allocs")); err != nil {
			return err
		}
		b.tables = append(b.tables, "```\n"+out+"```\n")
		return nil
	})
}

func pprof(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go tool pprof: %w\n%s", err, out)
	}
	return string(out), nil
}

// profiler has a worker with the build tag profiled write its profiles into a folder.
type profiler struct{ dir string }

func (p *profiler) settings() []string { return []string{"DOCKET_PROFILE_DIR=" + p.dir} }

func (p *profiler) start(*worker) error { return nil }

func (p *profiler) end(ctx context.Context, w *worker) error {
	if err := w.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return fmt.Errorf("ask for the profiles: %w", err)
	}
	return w.until(ctx, stuck, 10*time.Millisecond, func() (bool, error) {
		_, err := os.Stat(filepath.Join(p.dir, "done"))
		return err == nil, nil
	})
}
