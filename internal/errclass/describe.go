package errclass

import (
	"fmt"
	"slices"
	"strings"
)

const descriptionWidth = 78

// Describe explains a SQLSTATE or one of our own codes to an operator, in
// several lines. It takes a SQLSTATE in either case. For what Lookup does not
// know it says so and names our own codes.
func Describe(code string) string {
	cases := Cases(code)
	if len(cases) == 0 {
		return unknownCode(code)
	}
	var b strings.Builder
	for i, c := range cases {
		if i > 0 {
			b.WriteByte('\n')
		}
		if c.When != "" {
			b.WriteString(strings.ToUpper(c.When[:1]) + c.When[1:] + ":\n\n")
		}
		describe(&b, c.Verdict)
	}
	return b.String()
}

// Case is a verdict on a code, and when it is that which counts.
type Case struct {
	When string // empty: always
	Verdict
}

// Cases are the verdicts on a code, a SQLSTATE in either case: none where nothing is known of it, several where what the
// server names beside it decides.
func Cases(code string) []Case {
	v, ok := Lookup(code)
	if !ok {
		v, ok = Lookup(strings.ToUpper(code))
	}
	switch {
	case !ok:
		return nil
	case v.Code != noPartition.Code:
		return []Case{{Verdict: v}}
	}
	return []Case{{"if the server names a constraint", v}, {"if it names none", noPartition}, {"if it names the constraint of a running migration", beforeCut}}
}

func describe(b *strings.Builder, v Verdict) {
	fmt.Fprintf(b, "%s  %s\n", v.Code, v.Name)
	fmt.Fprintf(b, "  at fault      %[2]s (class %[1]s)\n", v.Class, classes[v.Class].blame)
	fmt.Fprintf(b, "  rule          %s\n", v.Rule)
	paragraph(b, "  what happens  ", v.Effect())
	paragraph(b, "  why           ", v.Why)
}

// paragraph writes text behind a label, its further lines indented as deep.
func paragraph(b *strings.Builder, label, text string) {
	b.WriteString(label)
	column := len(label)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > descriptionWidth:
			b.WriteString("\n" + strings.Repeat(" ", len(label)))
			column = len(label)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}

func unknownCode(code string) string {
	if len(code) > 40 {
		code = code[:40] + "..."
	}
	var ours []string
	for _, v := range ownCodes {
		ours = append(ours, v.Code)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q is neither a SQLSTATE (five characters of 0-9 and A-Z) nor a code of Docket.\n", code)
	paragraph(&b, "  codes of Docket  ", strings.Join(ours, " "))
	return b.String()
}

const pageIntroduction = `# Errors: what is at fault?

When a batch cannot be stored, the cause decides what happens to its records. The database answers with a SQLSTATE; without an
answer, the kind of failure is the code. This page has Docket's verdict on each code, generated from the program.
` + "`consumer classify CODE`" + ` explains a single one.

These rules stand above the tables:

- Before the first dead letter the database must accept a known-good **probe row** (same statement, rolled back). If it does
  not, the setup is at fault, whatever the code said.
- To **bisect** is to search a batch for its bad records, from the row that the server names or by halving, until each is alone.
  A record is dead-lettered only if it fails alone, twice. The second time is on another connection, a few seconds old at most, on
  which nothing was stored. Each error on the way is judged on its own.
- A fault of the setup while the probe row is accepted is bisected too, and a record that fails alone is **parked**. So one odd
  record never stops a partition.
- An unknown error counts as temporary; it is never the record's fault.
- When several errors come together, Docket's own shutdown comes first, then the first SQLSTATE (25P02 last, because it only
  follows another error), then errors without a SQLSTATE.

A SQLSTATE that is not listed gets the verdict of its class. One of an unknown class is left to the probe
(` + "`probe_bisect`" + `).
`

// Markdown renders all classes, rules and verdicts as the page docs/errors.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(pageIntroduction)
	b.WriteString("\n## Classes\n\n| class | meaning |\n|---|---|\n")
	for _, c := range classes {
		row(&b, "`"+c.name+"`", c.blame)
	}
	b.WriteString("\n## Rules\n\n| rule | class | what happens |\n|---|---|---|\n")
	for _, r := range rules {
		row(&b, "`"+r.name+"`", "`"+r.class.String()+"`", r.effect)
	}
	b.WriteString("\n## SQLSTATEs\n")
	heading := ""
	own := false
	for _, v := range Table() {
		switch {
		case isSQLState(v.Code) && v.Code[:2] != heading:
			heading = v.Code[:2]
			fmt.Fprintf(&b, "\n### Class %s: unlisted codes `%s`\n\n| code | name | class | rule | why |\n|---|---|---|---|---|\n", heading, classDefaults[heading])
		case !isSQLState(v.Code) && !own:
			own = true
			b.WriteString("\n## Failures without a SQLSTATE\n\n| code | name | class | rule | why, and what happens |\n|---|---|---|---|---|\n")
		}
		row(&b, "`"+v.Code+"`", v.Name, "`"+v.Class.String()+"`", "`"+v.Rule.String()+"`", pageReason(v))
	}
	return b.String()
}

func pageReason(v Verdict) string {
	if own, ok := ownEffects[v.Code]; ok {
		return v.Why + " " + own
	}
	return v.Why
}

func row(b *strings.Builder, cells ...string) {
	cells = slices.Clone(cells)
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}
