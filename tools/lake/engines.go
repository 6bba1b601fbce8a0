package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// engines are the modules of the folder engines, in the order of the table.
var engines = []string{"duck", "arrow", "spark"}

// asker runs the engines. Its programs end with it.
type asker struct {
	python, engines, questions, page, work string
	log                                    io.Writer
}

// ask asks one engine about each of the archives.
func (a *asker) ask(ctx context.Context, engine string, archives ...string) ([]*answers, error) {
	work := filepath.Join(a.work, engine)
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	args := []string{filepath.Join(a.engines, "ask.py"), engine, a.questions, work, a.page}
	var outs []string
	for i, archive := range archives {
		out := filepath.Join(work, fmt.Sprintf("answers-%d", i))
		args, outs = append(args, archive, out), append(outs, out)
	}
	if err := a.run(ctx, args, filepath.Join(work, "log")); err != nil {
		return nil, fmt.Errorf("ask %s: %w", engine, err)
	}
	var all []*answers
	for _, out := range outs {
		said, err := readAnswers(out)
		if err != nil {
			return nil, fmt.Errorf("read the answers of %s: %w", engine, err)
		}
		all = append(all, said)
	}
	return all, nil
}

// run runs Python with a process group of its own, and ends what is left of the group: Spark has several programs.
// Its output goes to a file, and to the asker's log if it failed.
func (a *asker) run(ctx context.Context, args []string, to string) error {
	said, err := os.Create(to) // #nosec G304 -- in the work folder
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	// The signal of Pdeathsig comes when the thread ends that started the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, a.python, args...) // #nosec G204 -- the program's own arguments
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	end := func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	}
	cmd.Cancel = end
	err = cmd.Run()
	if cmd.Process != nil {
		err = errors.Join(err, end())
	}
	if err == nil {
		return nil
	}
	if _, again := said.Seek(0, io.SeekStart); again == nil {
		_, _ = io.Copy(a.log, said)
	}
	return err
}
