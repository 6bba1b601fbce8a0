package conservation

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/home"
)

// spoolLine is a line of a spooled file, as anyone may read it.
type spoolLine struct {
	Topic         string  `json:"topic"`
	Key           *string `json:"key"`
	KeyEncoding   string  `json:"key_encoding"`
	Value         *string `json:"value"`
	ValueEncoding string  `json:"value_encoding"`
	Headers       []struct {
		Key      string  `json:"key"`
		Value    *string `json:"value"`
		Encoding string  `json:"encoding"`
	} `json:"headers"`
	Timestamp *time.Time `json:"timestamp"`
}

// ReadSpool reads every file of a spool directory. A directory that is not there holds nothing; a file that goes away
// meanwhile was published, and is left out.
func ReadSpool(dir string) ([]Forwarded, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil {
		return nil, fmt.Errorf("list spool: %w", err)
	}
	var found []Forwarded
	for _, name := range names {
		lines, err := readSpoolFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read spooled file %s: %w", filepath.Base(name), err)
		}
		found = append(found, lines...)
	}
	return found, nil
}

func readSpoolFile(name string) ([]Forwarded, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return ReadSpoolFile(bufio.NewReader(file))
}

// ReadSpoolFile reads what a data file of the spool holds.
func ReadSpoolFile(file io.Reader) ([]Forwarded, error) {
	records, err := spooledRecords(file)
	if err != nil {
		return nil, err
	}
	found := make([]Forwarded, len(records))
	for i, r := range records {
		found[i] = ForwardedOf(r, home.Spooled, "the spool")
	}
	return found, nil
}

func spooledRecords(file io.Reader) ([]*kgo.Record, error) {
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var records []*kgo.Record
	for dec := json.NewDecoder(plain); ; {
		var line spoolLine
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return nil, errors.New("a line is not JSON") // the error of a decoder can quote the line
		}
		r, err := line.record()
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
}

func (l *spoolLine) record() (*kgo.Record, error) {
	key, errKey := unspool(l.Key, l.KeyEncoding)
	value, errValue := unspool(l.Value, l.ValueEncoding)
	r := &kgo.Record{Topic: l.Topic, Key: key, Value: value}
	if l.Timestamp != nil {
		r.Timestamp = *l.Timestamp
	}
	errs := []error{errKey, errValue}
	for _, h := range l.Headers {
		v, err := unspool(h.Value, h.Encoding)
		errs = append(errs, err)
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: v})
	}
	return r, errors.Join(errs...)
}

func unspool(text *string, encoding string) ([]byte, error) {
	switch {
	case text == nil:
		return nil, nil
	case encoding == "":
		return []byte(*text), nil
	case encoding == "base64":
		b, err := base64.StdEncoding.DecodeString(*text)
		if err != nil {
			return nil, errors.New("a value is not base64")
		}
		return b, nil
	}
	return nil, fmt.Errorf("unknown encoding %q", encoding)
}
