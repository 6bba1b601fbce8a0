package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

const (
	pagerFlag = "no-pager"
	colorFlag = "color"
)

// long are the commands whose text can be longer than a terminal. They read everything before they print.
var long = []string{"why", "diff", "dlq show", "settings", "classify"}

// pager shows a text that is longer than the terminal.
type pager struct {
	text    *bytes.Buffer // nil: nothing is paged
	out     io.Writer
	argv    []string
	height  int
	show    func(ctx context.Context, argv []string, text []byte) error
	environ []string
}

// withPager takes --no-pager out of the arguments, and collects the text of a command that may be paged.
func withPager(env cli.Env, o frame.Options) (cli.Env, pager) {
	p := pager{out: env.Stdout, height: o.Terminal.Height, show: o.Page, environ: env.Environ}
	if i := slices.Index(env.Args, "--"+pagerFlag); i >= 0 && !slices.Contains(env.Args[:i], "--") {
		env.Args = slices.Delete(slices.Clone(env.Args), i, i+1)
		return env, p
	}
	values := term.Environment(env.Environ)
	command, set := values["PAGER"]
	if !set {
		command = "less"
	}
	p.argv = strings.Fields(command)
	words := wordsOf(env.Args)
	name := strings.Join(words[:min(2, len(words))], " ")
	fits := slices.ContainsFunc(long, func(l string) bool { return name == l || strings.HasPrefix(name, l+" ") })
	if !fits || !o.Terminal.Out || !o.Terminal.In || p.height <= 0 || len(p.argv) == 0 || p.argv[0] == "cat" || values["TERM"] == "dumb" {
		return env, p
	}
	p.text = &bytes.Buffer{}
	env.Stdout = p.text
	return env, p
}

// end shows the text. If the pager cannot be started, the text is printed. Ctrl-C reaches the pager by itself, as both are in
// the foreground: a pager like less then stops what it does and stays. Another signal ends the pager.
func (p pager) end(signals <-chan os.Signal) {
	if p.text == nil || p.text.Len() == 0 {
		return
	}
	show := p.show
	if show == nil {
		show = p.process
	}
	if bytes.Count(p.text.Bytes(), []byte("\n")) >= p.height {
		ctx, stop := untilAsked(signals)
		err := show(ctx, p.argv, p.text.Bytes())
		asked := ctx.Err() != nil
		if stop(); err == nil || asked {
			return
		}
	}
	_, _ = p.out.Write(p.text.Bytes()) // nobody reads any more
}

// untilAsked is a context that ends with the first signal other than Ctrl-C. stop ends the watch over signals and waits for it.
func untilAsked(signals <-chan os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case s := <-signals:
				if s != os.Interrupt {
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// process runs a pager on the terminal of this process. A pager that ends early, or with a code, has shown the text.
func (p pager) process(ctx context.Context, argv []string, text []byte) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// A pager that is killed leaves the terminal without echo.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	c.Stdin, c.Stdout, c.Stderr, c.Env = bytes.NewReader(text), os.Stdout, os.Stderr, p.environ
	if term.Environment(p.environ)["LESS"] == "" {
		c.Env = append(slices.Clone(c.Env), "LESS=FRX") // colours; ends at once on a short text
	}
	err := c.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return nil
	}
	return err
}

// withColor takes --color WHEN out of the arguments.
func withColor(env cli.Env, o frame.Options) (cli.Env, frame.Options, error) {
	when, given, err := takeFlag(&env, colorFlag)
	if !given || err != nil {
		return env, o, err
	}
	chosen, err := frame.Among("time for colours", when, []string{"auto", "always", "never"})
	o.Color = term.Colors(chosen)
	return env, o, err
}
