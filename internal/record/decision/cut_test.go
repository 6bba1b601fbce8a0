package decision

import "testing"

func TestGunzip_CutAnywhere(t *testing.T) {
	t.Parallel()
	one, two := zip(t, good(`"a":1`)), zip(t, "\n"+good(`"a":2`))
	// The second member has a name and a comment, as the gzip command and other programs write them.
	two = append(append(append([]byte{}, two[:3]...), append([]byte{8 | 16}, two[4:10]...)...), append([]byte("name\x00comment\x00"), two[10:]...)...)
	whole := append(append([]byte{}, one...), two...)
	if record, refusal := Decode(whole, limit); refusal != nil || len(record.Parts) != 2 {
		t.Fatalf("whole: %d parts, %v", len(record.Parts), refusal)
	}
	for n := 2; n < len(whole); n++ {
		if n == len(one) {
			continue // a whole member
		}
		if record, refusal := Decode(whole[:n], limit); refusal == nil || refusal.Reason != Syntax {
			t.Errorf("cut after %d of %d bytes (the first member has %d): %d parts, %v", n, len(whole), len(one), len(record.Parts), refusal)
		}
	}
}
