package decision

import (
	"strings"
	"testing"
)

func TestDecode_TooManyDecisions(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(n int) string{
		"array": func(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" },
		"lines": func(n int) string { return strings.Repeat("{}\n", n) },
	} {
		read, refusal := Decode([]byte(make(MaxDecisions)), 1<<30)
		if refusal != nil || len(read.Parts) != MaxDecisions {
			t.Errorf("%s: %d decisions give %d parts, %v", name, MaxDecisions, len(read.Parts), refusal)
		}
		if _, refusal := Decode([]byte(make(MaxDecisions+1)), 1<<30); refusal == nil || refusal.Reason != TooLarge {
			t.Errorf("%s: one more is %v, want too_large", name, refusal)
		}
	}
}
