package reader_test

import (
	"fmt"
	"testing"

	"docket/internal/history/reader"
)

// TestMatchText_RoundTrip: the command of the next page has each match as it was given.
func TestMatchText_RoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"input", "input:/a", "raw:/a~1b/0=null", `input:"/a=b"=1`, `input:"/a\"b"="x y"`, "result=true", "result:/x=it's"} {
		m, err := reader.ParseMatch(text)
		if err != nil {
			t.Fatal(text, err)
		}
		again, err := reader.ParseMatch(m.Text())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(m) {
			t.Errorf("%s became %s: %v", text, m.Text(), err)
		}
	}
}
