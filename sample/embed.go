// Package sample holds real OPA decision logs for tests, benchmarks and the demo; it stays free of any code that
// reads what they say.
package sample

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

//go:embed opa-decision-logs.jsonl.gz
var decisionLogs []byte

// DecisionLogs returns the sample, one decision log each, without line ends. The slices are the caller's own. It
// panics where the embedded file is broken, which only a broken build can bring about.
func DecisionLogs() [][]byte {
	r, err := gzip.NewReader(bytes.NewReader(decisionLogs))
	if err != nil {
		panic(fmt.Errorf("open the embedded decision logs: %w", err))
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(fmt.Errorf("inflate the embedded decision logs: %w", err))
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}
