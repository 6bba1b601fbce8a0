package term

import (
	"bufio"
	"context"
	"strings"
)

// Asks says whether questions can be asked: a person reads remarks and answers.
func (s *Screen) Asks() bool { return s.Terminal.In && s.Terminal.Err }

// Confirm asks a question that is answered by yes or no; Enter is the answer given.
func (s *Screen) Confirm(ctx context.Context, question string, otherwise bool) (bool, error) {
	choice := " [y/N] "
	if otherwise {
		choice = " [Y/n] "
	}
	s.Tell("%s%s", question, choice)
	answer := make(chan string, 1)
	go func() {
		line, err := s.lines().ReadString('\n')
		if err != nil && line == "" {
			line = "n" // standard input has ended
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		s.Tell("\n")
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

// lines is standard input, line by line. One reader serves all questions, as it reads ahead.
func (s *Screen) lines() *bufio.Reader {
	if s.answers == nil {
		s.answers = bufio.NewReader(s.In)
	}
	return s.answers
}
