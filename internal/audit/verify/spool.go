package verify

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/home"
)

// ReadSpool reads a spool directory by the documented format alone: every entry, and the records of whole files. A
// broken file has no records and its fault in Broken. A missing directory is empty. A file that disappears meanwhile
// was published and is left out. dir names the directory for people.
func ReadSpool(fsys fs.FS, dir string) (SpoolDir, []Forwarded, error) {
	found := SpoolDir{Dir: dir, Mode: fs.ModeDir | 0o700}
	info, err := fs.Stat(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil, nil
	}
	if err != nil {
		return found, nil, fmt.Errorf("read spool: %w", err)
	}
	found.Mode = info.Mode()
	var all []Forwarded
	for _, sub := range []string{".", "corrupt"} {
		entries, err := fs.ReadDir(fsys, sub)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, nil, fmt.Errorf("list spool: %w", err)
		}
		for _, entry := range entries {
			name := path.Join(sub, entry.Name())
			file, records, err := readEntry(fsys, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return found, nil, fmt.Errorf("read spooled file %s: %w", name, err)
			}
			if kind, _ := spoolName(name); kind != nameOwn || sub != "." {
				found.Files = append(found.Files, file)
			}
			for _, r := range records {
				all = append(all, AllForwardedOf(r, home.Spooled, path.Join(dir, name))...)
			}
		}
	}
	return found, all, nil
}

// readEntry reads one entry, with its records if it is a data file.
func readEntry(fsys fs.FS, name string) (SpoolFile, []*kgo.Record, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return SpoolFile{}, nil, err
	}
	file := SpoolFile{Name: name, Mode: info.Mode(), Modified: info.ModTime()}
	if kind, _ := spoolName(name); kind != nameData || !info.Mode().IsRegular() {
		return file, nil, nil
	}
	records, err := readSpoolFile(fsys, name)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return file, nil, err
	}
	if err != nil {
		file.Broken, records = err.Error(), nil
	}
	file.Lines = len(records)
	return file, records, nil
}

// spoolLine is a line of a spooled file in the documented format.
type spoolLine struct {
	Topic         string  `json:"topic"`
	TopicEncoding string  `json:"topic_encoding"`
	Key           *string `json:"key"`
	KeyEncoding   string  `json:"key_encoding"`
	Value         *string `json:"value"`
	ValueEncoding string  `json:"value_encoding"`
	Headers       []struct {
		Key         string  `json:"key"`
		KeyEncoding string  `json:"key_encoding"`
		Value       *string `json:"value"`
		Encoding    string  `json:"encoding"`
	} `json:"headers"`
	Timestamp *string `json:"timestamp"`
}

// These replace the errors of decoders, which can quote the line.
var (
	errNotWhole  = errors.New("is not whole")
	errNotJSON   = errors.New("has a line that is not JSON")
	errNotBase64 = errors.New("has a value that is not base64")
)

func readSpoolFile(fsys fs.FS, name string) ([]*kgo.Record, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return readSpoolLines(file)
}

// ReadSpoolFile reads the content of one data file. An error says that it is broken, and quotes nothing.
func ReadSpoolFile(content io.Reader, name string) ([]Forwarded, error) {
	records, err := readSpoolLines(content)
	if err != nil {
		return nil, err
	}
	all := make([]Forwarded, 0, len(records))
	for _, r := range records {
		all = append(all, AllForwardedOf(r, home.Spooled, name)...)
	}
	return all, nil
}

func readSpoolLines(content io.Reader) (records []*kgo.Record, err error) {
	whole := func(r io.Reader) io.Reader { return r }
	if err := eachSpoolLine(content, whole, func(r *kgo.Record) { records = append(records, r) }); err != nil {
		return nil, err
	}
	return records, nil
}

// eachSpoolLine passes on the records of a data file until one cannot be read. within may limit the inflated bytes.
func eachSpoolLine(content io.Reader, within func(io.Reader) io.Reader, each func(*kgo.Record)) error {
	plain, err := gzip.NewReader(bufio.NewReader(content))
	if err != nil {
		return disk(err, errNotWhole)
	}
	for dec := json.NewDecoder(within(plain)); ; {
		var line spoolLine
		err := dec.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return errNotWhole
		case err != nil:
			return disk(err, errNotJSON)
		}
		r, err := line.record()
		if err != nil {
			return err
		}
		each(r)
	}
}

// disk returns an error of the disk, and replaces any other.
func disk(err, instead error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return err
	}
	return instead
}

func (l *spoolLine) record() (*kgo.Record, error) {
	topic, errTopic := unspool(&l.Topic, l.TopicEncoding)
	key, errKey := unspool(l.Key, l.KeyEncoding)
	value, errValue := unspool(l.Value, l.ValueEncoding)
	r := &kgo.Record{Topic: string(topic), Key: key, Value: value}
	if l.Timestamp != nil {
		r.Timestamp, _ = time.Parse(time.RFC3339Nano, *l.Timestamp) // a year beyond RFC 3339 is not needed here
	}
	errs := []error{errTopic, errKey, errValue}
	for _, h := range l.Headers {
		name, errName := unspool(&h.Key, h.KeyEncoding)
		v, err := unspool(h.Value, h.Encoding)
		errs = append(errs, errName, err)
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(name), Value: v})
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
			return nil, errNotBase64
		}
		return b, nil
	}
	return nil, errNotBase64
}
