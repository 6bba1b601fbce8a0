package deskcli

import (
	"bufio"
	"context"
	"strings"
)

// asks says whether there is a person to be asked: somebody reads what is told and answers.
func (s *session) asks() bool { return s.o.Terminal.In && s.o.Terminal.Err }

// yes asks a question that is answered by yes or no; Enter is the answer given.
func (s *session) yes(ctx context.Context, question string, otherwise bool) (bool, error) {
	choice := " [y/N] "
	if otherwise {
		choice = " [Y/n] "
	}
	s.tell("%s%s", question, choice)
	answer := make(chan string, 1)
	go func() {
		line, err := s.lines().ReadString('\n')
		if err != nil && line == "" {
			line = "n" // nobody is there any more
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		s.tell("\n")
		return false, ctx.Err()
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		case "":
			return otherwise, nil
		}
		return false, nil
	}
}

// lines is standard input, line by line; what one question read ahead is there for the next.
func (s *session) lines() *bufio.Reader {
	if s.in == nil {
		s.in = bufio.NewReader(s.o.Stdin)
	}
	return s.in
}
