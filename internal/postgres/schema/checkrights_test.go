package schema

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLedgerNeeds_AreThoseGranted holds the check against the file that operators run: the check looks at each right of the desk.
func TestLedgerNeeds_AreThoseGranted(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../../docs/desk-grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	grants := regexp.MustCompile(`(?s)GRANT ([A-Z, ]+) ON (.*?) TO ([a-z_, ]+);`)
	for _, g := range grants.FindAllStringSubmatch(regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(string(file), ""), -1) {
		if !slices.Contains(strings.Split(g[3], ", "), "docket_desk") || strings.HasPrefix(g[2], "SCHEMA") {
			continue
		}
		on := strings.Join(strings.Fields(g[2]), " ")
		if functions, ok := strings.CutPrefix(on, "FUNCTION "); ok {
			for f := range strings.SplitSeq(functions, "), ") {
				granted = append(granted, "EXECUTE on "+strings.TrimSuffix(f, ")")+")")
			}
			continue
		}
		for table := range strings.SplitSeq(on, ", ") {
			for right := range strings.SplitSeq(g[1], ", ") {
				granted = append(granted, right+" on "+table)
			}
		}
	}
	var needed []string
	for _, need := range ledgerNeeds {
		for _, right := range need.rights {
			needed = append(needed, right+" on "+need.table)
		}
	}
	for _, f := range ledgerFunctions {
		needed = append(needed, "EXECUTE on "+f)
	}
	needed = append(needed, "SELECT on decision_logs", "INSERT on decision_logs") // another check looks at these
	slices.Sort(granted)
	slices.Sort(needed)
	if len(granted) < 50 || !slices.Equal(slices.Compact(granted), needed) {
		for _, of := range granted {
			if !slices.Contains(needed, of) {
				t.Errorf("nobody looks whether the desk has %s", of)
			}
		}
		for _, of := range needed {
			if !slices.Contains(granted, of) {
				t.Errorf("the desk is not granted %s", of)
			}
		}
	}
}
