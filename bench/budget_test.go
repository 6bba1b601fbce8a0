package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const script = `  4711 
	ffffffff81a0 copy_user_generic_string
	ffffffff81b0 __x64_sys_write
	          47f3c0 internal/poll.(*FD).Write
	          6de201 github.com/jackc/pgx/v5/pgproto3.(*Frontend).SendUnbufferedEncodedCopyData
	          7de201 docket/internal/postgres/store.(*sender).send

  4711 
	          47f3c0 runtime.memmove
	          7de201 docket/internal/postgres/store.wholeRow
	          7de202 docket/internal/postgres/store.(*sender).send

     0 
	ffffffff81a0 native_safe_halt

  12 
	    7f12 [unknown]`

func TestReadSamples_OfProcesses(t *testing.T) {
	t.Parallel()
	var got []string
	if err := ReadSamples(strings.NewReader(script), func(s Sample) { got = append(got, WorkOf(WorkerWorks(), s.Stack)) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"send, and read answers", "encode", Rest}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := ReadSamples(strings.NewReader("perf: no samples\n"), func(Sample) {}); err == nil {
		t.Error("a line without a sample was read as one")
	}
}

func TestTable_SharesAndMicroseconds(t *testing.T) {
	t.Parallel()
	b := Budget{Who: "worker", Whole: 3 * time.Second, Works: WorkerWorks()}
	for _, name := range []string{"docket/internal/record/decision.(*scanner).run", "crypto/internal/fips140/sha256.blockSHANI", "main.main", "main.main"} {
		b.Add([]string{name})
	}
	var text strings.Builder
	Table(&text, 1_000_000, b)
	for _, line := range []string{"| worker | hash | 25 % | 0.75 |", "| worker | scan | 25 % | 0.75 |", "| worker | other | 50 % | 1.50 |", "| **worker** | all |  | **3.00** |"} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, text.String())
		}
	}
}
