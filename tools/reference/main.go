// Command reference writes what --help prints of all commands as one page of Markdown, and as a man page each.
//
//	go run ./tools/reference -markdown docs/commands.md
//	go run ./tools/reference -man share/man/man1 -version v1.2.3
//
// It does not use cobra/doc: that knows neither the settings nor the exit codes of a command, which our help has.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"docket/internal/programs/cli/tree"
	"docket/internal/programs/docket"
)

func main() {
	markdown := flag.String("markdown", "", "write the reference to `FILE`")
	man := flag.String("man", "", "write man pages into the folder `DIR`")
	version := flag.String("version", "dev", "`VERSION` that man pages name")
	flag.Parse()
	if err := write(*markdown, *man, *version); err != nil {
		fmt.Fprintf(os.Stderr, "reference: %v\n", err)
		os.Exit(1)
	}
}

func write(markdown, man, version string) error {
	pages := docket.Pages()
	if markdown != "" {
		if err := os.WriteFile(markdown, []byte(reference(pages)), 0o644); err != nil {
			return err
		}
	}
	if man == "" {
		return nil
	}
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	files := map[string]string{}
	for _, p := range pages {
		files[manName(p.Name)] = manual(p, pages, version)
	}
	for link, command := range links {
		files[link] = ".so man1/" + manName(command) + ".1\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(man, name+".1"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// links are the names by which docket is called as one of its programs alone.
var links = map[string]string{"consumer": "docket consume", "parking-replayer": "docket replay", "collector": "docket collect"}

// settingsTitle begins the long list of settings in the help of a program.
const settingsTitle = "Settings (environment):"

// reference is the page of Markdown.
func reference(pages []tree.Page) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nThis page has what `--help` prints of each command. Do not edit it:\n" +
		"`go run ./tools/reference -markdown docs/commands.md` writes it. Releases have man pages with the\nsame text: `man docket`, `man docket-dlq-list`.\n\n" +
		"`docket consume`, `docket replay` and `docket collect` are also called by the names `consumer`,\n`parking-replayer` and `collector`, which are links to `docket`.\n")
	group := ""
	for _, p := range pages[1:] {
		if strings.Count(p.Name, " ") > 1 {
			continue
		}
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(&b, "\n## %s\n\n| command | |\n|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", p.Name, anchor(p.Name), p.Short)
	}
	b.WriteString("\n# Help\n")
	for _, p := range pages {
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", p.Name, withoutSettings(p.Text))
	}
	return b.String()
}

func anchor(heading string) string { return strings.ReplaceAll(heading, " ", "-") }

// withoutSettings leaves the whole list of settings out, which docs/settings.md has.
func withoutSettings(text string) string {
	before, after, found := strings.Cut(text, settingsTitle+"\n  Each line:")
	_, rest, ended := strings.Cut(after, "\nHTTP (")
	if !found || !ended {
		return text
	}
	return before + settingsTitle + "\n  docs/settings.md lists them.\n\nHTTP (" + rest
}

// manual is the man page of a command: each title of its help begins a section.
func manual(p tree.Page, pages []tree.Page, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Docket\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(manName(p.Name)), "docket "+version, escaped(manName(p.Name)), escaped(p.Short))
	b.WriteString(".SH DESCRIPTION\n.nf\n")
	for line := range strings.Lines(p.Text) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutSuffix(line, ":"); ok && title != "" && title[0] >= 'A' && title[0] <= 'Z' && !strings.Contains(title, ". ") {
			fmt.Fprintf(&b, ".fi\n.SH %q\n.nf\n", strings.ToUpper(title))
			continue
		}
		b.WriteString(escaped(line) + "\n")
	}
	b.WriteString(".fi\n")
	var also []string
	for _, other := range pages {
		if parent := other.Name[:max(0, strings.LastIndex(other.Name, " "))]; parent == p.Name || strings.HasPrefix(p.Name, other.Name+" ") {
			also = append(also, escaped(manName(other.Name))+"(1)")
		}
	}
	if len(also) > 0 {
		b.WriteString(".SH \"SEE ALSO\"\n" + strings.Join(also, ", ") + "\n")
	}
	return b.String()
}

func manName(command string) string { return strings.ReplaceAll(command, " ", "-") }

// escaped keeps roff from reading commands in a line.
func escaped(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
