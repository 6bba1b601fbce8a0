package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// questions are the names of the questions, in the order of the table.
var questions = []string{"days", "rates", "flips", "rules", "payloads"}

// answers are those of one engine. A row is the text of a JSON array. Rows are in the order of their text.
type answers struct {
	Engine  string             `json:"engine"`
	Seconds map[string]float64 `json:"seconds"`
	rows    map[string][]string
	took    time.Duration
}

// add adds a row.
func (a *answers) add(question string, values ...any) {
	a.rows[question] = append(a.rows[question], string(compact(values)))
}

func (a *answers) sort() {
	for _, rows := range a.rows {
		slices.Sort(rows)
	}
}

// compact writes JSON in one way, whoever wrote it before.
func compact(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // values are texts and numbers
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// readAnswers reads what ask.py wrote.
func readAnswers(dir string) (*answers, error) {
	text, err := os.ReadFile(filepath.Join(dir, "times.json")) // #nosec G304 -- in the work folder
	if err != nil {
		return nil, err
	}
	a := &answers{rows: map[string][]string{}}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("read the times: %w", err)
	}
	for _, seconds := range a.Seconds {
		a.took += time.Duration(seconds * float64(time.Second))
	}
	for _, question := range questions {
		text, err := os.ReadFile(filepath.Join(dir, question+".jsonl")) // #nosec G304 -- in the work folder
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var row []any
			if err := d.Decode(&row); err != nil {
				return nil, fmt.Errorf("read the answer %s: %w", question, err)
			}
			a.rows[question] = append(a.rows[question], string(compact(row)))
		}
	}
	a.sort()
	return a, nil
}

// digest shortens an answer for people.
func (a *answers) digest(question string) string {
	sum := sha256.Sum256([]byte(strings.Join(a.rows[question], "\n")))
	return hex.EncodeToString(sum[:4])
}

// differences names each question to which two engines answer differently, with the first row that one of them lacks.
func differences(want, got *answers) error {
	var all []error
	for _, question := range questions {
		if w, g := want.rows[question], got.rows[question]; len(w) == 0 || !slices.Equal(w, g) {
			all = append(all, fmt.Errorf("%s: %s has %d rows and %s has %d: %s", question, want.Engine, len(w), got.Engine, len(g), firstOf(want, got, question)))
		}
	}
	return errors.Join(all...)
}

func firstOf(a, b *answers, question string) string {
	x, y := a.rows[question], b.rows[question]
	for i := range max(len(x), len(y)) {
		switch {
		case i >= len(x):
			return "only " + b.Engine + " has " + y[i]
		case i >= len(y) || x[i] < y[i]:
			return "only " + a.Engine + " has " + x[i]
		case x[i] > y[i]:
			return "only " + b.Engine + " has " + y[i]
		}
	}
	return "there are none"
}
