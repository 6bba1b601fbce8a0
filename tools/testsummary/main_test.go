package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stream = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: talk\n"}
{"Action":"END","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p","Elapsed":0.1}
`

func TestRun_PrintsAndCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in, out, line string
		fails               bool
	}{
		{
			name: "a test that passed is quiet", in: strings.ReplaceAll(stream, "END", "pass"),
			out: "ok  \tp\t0.1s\n", line: "1 passed, 0 failed, 0 skipped in 1 packages",
		},
		{
			name: "a test that failed is shown and counts once",
			in:   strings.ReplaceAll(stream, "END", "fail") + `{"Action":"fail","Package":"p"}` + "\n",
			out:  "    a_test.go:1: talk\nok  \tp\t0.1s\n",
			line: "0 passed, 1 failed, 0 skipped in 1 packages", fails: true,
		},
		{
			name: "a package that failed without a failed test counts", fails: true,
			in:  `{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n",
			out: "FAIL\tp [build failed]\n", line: "0 passed, 1 failed, 0 skipped in 1 packages",
		},
		{
			name: "a test that never ended is shown when its package fails", fails: true,
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: x\n"}` + "\n" +
				`{"Action":"fail","Package":"p"}` + "\n",
			out: "panic: x\n", line: "0 passed, 1 failed, 0 skipped in 1 packages",
		},
		{
			name: "nothing ran is a failure", in: "", out: "", fails: true,
			line: "0 passed, 0 failed, 0 skipped in 0 packages",
		},
		{
			name: "what is no event is printed as it is", in: "plain\n" + strings.ReplaceAll(stream, "END", "skip"),
			out: "plain\nok  \tp\t0.1s\n", fails: true,
			line: "0 passed, 0 failed, 1 skipped in 1 packages",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			to := filepath.Join(t.TempDir(), "summary")
			var out strings.Builder
			err := run(strings.NewReader(tc.in), &out, "fast", "nothing", to)
			if (err != nil) != tc.fails {
				t.Errorf("run: %v, want failure: %t", err, tc.fails)
			}
			if out.String() != tc.out {
				t.Errorf("printed %q, want %q", out.String(), tc.out)
			}
			line, err := os.ReadFile(to)
			if err != nil {
				t.Fatalf("read the summary: %v", err)
			}
			if want := "fast         " + tc.line + "; ran against: nothing\n"; string(line) != want {
				t.Errorf("summary %q, want %q", line, want)
			}
		})
	}
}
