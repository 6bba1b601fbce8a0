package cli

import "testing"

func TestFolded_ListsStay(t *testing.T) {
	t.Parallel()
	const text = "One\nparagraph.\n\n  hot    in the table\n  wedged and so on\n\nAnother."
	if got, want := Folded(text, ""), "One paragraph.\n\n  hot    in the table\n  wedged and so on\n\nAnother."; got != want {
		t.Errorf("got\n%s", got)
	}
	if got, want := Folded(text, "> "), "One paragraph.\n\n>   hot    in the table\n>   wedged and so on\n\n> Another."; got != want {
		t.Errorf("got\n%s", got)
	}
}
