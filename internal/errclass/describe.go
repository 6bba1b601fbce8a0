package errclass

import (
	"fmt"
	"slices"
	"strings"
)

const descriptionWidth = 78

// Describe explains a SQLSTATE or one of Docket's codes to an operator, in several lines. It takes upper and lower
// case. For an unknown code it says so and lists Docket's codes.
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
		describe(&b, c.Classification)
	}
	return b.String()
}

// Case is the classification of a code, and the condition under which it applies.
type Case struct {
	When string // empty: always
	Classification
}

// Cases classifies a code, a SQLSTATE in upper or lower case. There is none for an unknown code. There
// are several if other facts from the server decide.
func Cases(code string) []Case {
	v, ok := Lookup(code)
	if !ok {
		v, ok = Lookup(strings.ToUpper(code))
	}
	switch {
	case !ok:
		return nil
	case v.Code != noPartition.Code:
		return []Case{{Classification: v}}
	}
	return []Case{{"with the name of a constraint", v}, {"without one", noPartition}, {"with that of a migration under way", beforeCut}}
}

func describe(b *strings.Builder, v Classification) {
	fmt.Fprintf(b, "%s  %s\n", v.Code, v.Name)
	fmt.Fprintf(b, "  class         %s: %s\n", v.Class, classes[v.Class].blame)
	fmt.Fprintf(b, "  rule          %s\n", v.Rule)
	paragraph(b, "  what happens  ", v.Effect())
	paragraph(b, "  why           ", v.Why)
}

// paragraph writes text behind a label, with further lines indented to the same column.
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

const pageIntroduction = `# Errors: whose fault is it?

When a batch cannot be stored, Docket first decides whose fault it was: the record's, the moment's
or the configuration's. Postgres answers with a SQLSTATE. Without one, the kind of failure
decides. These tables have the class of each code; ` + "`consumer classify CODE`" + ` explains one of
them.

Five rules come first:

- **Probe**: for an error of the database, Docket dead-letters nothing until the database accepts
  a known-good row. The row goes by the same statement and is rolled back. Then Docket waits for a
  harmless COMMIT. If the database rejects any of it, the configuration is at fault, whatever the
  code.
- **Bisect**: Docket searches the batch for its bad records. It starts at the row that the server
  names, or halves the batch. A record is dead-lettered only if it fails alone twice. The second
  time is on another connection, at most a few seconds old, that stored nothing. Docket judges
  every error on the way again.
- **Park**: if the probe row is accepted despite a configuration fault, Docket bisects too, and
  parks records that fail alone. One odd record then never stops a partition.
- **Unknown errors** blame the moment, never the record.
- **Several errors at once**: Docket's own shutdown comes first, then the first SQLSTATE, then
  errors without one. 25P02 comes last, because it only repeats another error.

A SQLSTATE that is not listed has the rule of its SQLSTATE class. For an unknown class the
probe decides (` + "`probe_bisect`" + `).
`

// Markdown renders all classes, rules and codes as the page docs/errors.md.
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

func pageReason(v Classification) string {
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
