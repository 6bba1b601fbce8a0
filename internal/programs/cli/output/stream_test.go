package output_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/programs/cli/output"
)

// However the lines are cut into writes, the result is the same, and that of the whole answer.
func TestStream_AnyParts(t *testing.T) {
	t.Parallel()
	const lines, whole = `{"id":"a1","path":"=x","n":-5}` + "\n" + `{"id":"b2","path":"a,b","n":1.5}` + "\n", `{"entries":[{"id":"a1","path":"=x","n":-5},{"id":"b2","path":"a,b","n":1.5}]}`
	rapid.Check(t, func(t *rapid.T) {
		for _, f := range []output.Format{output.CSV, output.ID} {
			var streamed, want bytes.Buffer
			s := output.NewStream(&streamed, f, []string{"id", "path", "n"})
			for rest := []byte(lines); len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
				if _, err := s.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := errors.Join(s.Close(), output.Write(&want, f, []byte(whole))); err != nil || streamed.String() != want.String() {
				t.Fatalf("%v: %q, want %q", err, streamed.String(), want.String())
			}
		}
	})
}

// shut takes nothing.
type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStream_Errors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := output.NewStream(&out, output.CSV, []string{"id"})
	if _, err := s.Write([]byte(`{"id":"a","other":1}` + "\n")); err == nil || s.Close() == nil {
		t.Error("a member without a column is lost")
	}
	for _, f := range []output.Format{output.CSV} {
		s := output.NewStream(shut{}, f, []string{"id"})
		if _, err := s.Write([]byte(`{"id":"a"}` + "\n")); !errors.Is(err, io.ErrClosedPipe) || !errors.Is(s.Close(), io.ErrClosedPipe) {
			t.Errorf("%s: %v", f, err)
		}
	}
	s = output.NewStream(&out, output.ID, nil)
	var none *output.NoIDsError
	if _, err := s.Write([]byte(`{"x":1}` + "\n")); !errors.As(err, &none) {
		t.Error(err)
	}
}
