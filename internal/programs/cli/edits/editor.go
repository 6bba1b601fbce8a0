package edits

import (
	"context"
	"os"
	"os/exec"
)

// runEditor runs an editor to its end. It drops signals meanwhile, as Ctrl-C goes to the editor, too. Another signal stops the
// command once the editor has ended.
func (ed *edit) runEditor(argv []string) error {
	ended, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		note := func(s os.Signal) { ed.stopped = ed.stopped || s != os.Interrupt }
		for {
			select {
			case s := <-ed.Env.Signals:
				note(s)
			case <-ended:
				for len(ed.Env.Signals) > 0 {
					note(<-ed.Env.Signals)
				}
				return
			}
		}
	}()
	defer func() { close(ended); <-drained }()
	edit := ed.Options.Edit
	if edit == nil {
		edit = process
	}
	return edit(context.Background(), argv)
}

// process runs a program on the terminal of this one.
func process(ctx context.Context, argv []string) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}
