package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	subject = regexp.MustCompile(`^[a-z0-9][a-z0-9 ,/_.-]*: \S`)
	// notVerb are first words that no command begins with.
	notVerb = regexp.MustCompile(`(?i)^(what|who|whoever|which|that|of|a|an|the|two|some|each|no|it|we|this|these)$`)
	past    = regexp.MustCompile(`(?i)^[a-z]{3,}(ed|ing)$`)
	verbs   = regexp.MustCompile(`(?i)^(embed|feed|need|seed|shed|speed|exceed|proceed|succeed|bring|ring|ping|string|swing|spring)$`)
)

// commits checks the subjects of commits that origin/main does not have. Without git
// or without that ref there is nothing to compare with.
func commits(ctx context.Context, root string) ([]Finding, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		return string(out), err
	}
	if main, _ := git("rev-parse", "--verify", "--quiet", "origin/main^{commit}"); main == "" {
		return nil, nil
	}
	log, err := git("log", "--no-merges", "--format=%h %s", "origin/main..HEAD")
	if err != nil {
		return nil, fmt.Errorf("git log: %w", err)
	}
	var found []Finding
	for _, line := range strings.Split(strings.TrimSpace(log), "\n") {
		hash, said, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		if rule := commit(said); rule != "" {
			found = append(found, Finding{File: "commit " + hash, Rule: rule, Text: said})
		}
	}
	return found, nil
}

// commit returns the rule that a subject breaks, or "".
func commit(said string) string {
	if strings.HasPrefix(said, `Revert "`) {
		return ""
	}
	if n := utf8.RuneCountInString(said); n > maxSubject {
		return fmt.Sprintf("%d letters in a subject, at most %d", n, maxSubject)
	}
	if !subject.MatchString(said) {
		return "subject is not \"room: imperative subject\""
	}
	_, act, _ := strings.Cut(said, ": ")
	first, _, _ := strings.Cut(act, " ")
	if notVerb.MatchString(first) || past.MatchString(first) && !verbs.MatchString(first) {
		return fmt.Sprintf("subject does not begin with a command, but with %q", first)
	}
	if phrase := bannedPhrase(act); phrase != "" {
		return fmt.Sprintf("banned phrase %q", phrase)
	}
	return ""
}
