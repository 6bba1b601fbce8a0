package verify

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/record/home"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadSpool_BrokenFileIsEmpty(t *testing.T) {
	t.Parallel()
	line := `{"topic":"dlq","key":null,"value":"v","headers":[{"key":"x-original-topic","value":"logs"},{"key":"x-original-partition","value":"1"},{"key":"x-original-offset","value":"2"}],"timestamp":"1.000000000","timestamp_encoding":"unix"}` + "\n"
	whole := zipped(t, line+line)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1
	files := fstest.MapFS{
		"1_a_1.jsonl.gz": {Data: whole, Mode: 0o600}, "1_a_2.jsonl.gz": {Data: whole[:len(whole)-5], Mode: 0o600}, "1_a_3.jsonl.gz": {Data: flipped, Mode: 0o600},
		"1_a_4.jsonl.gz": {Data: zipped(t, line+"{"), Mode: 0o600}, "1_a_5.jsonl.gz": {Mode: 0o600}, "1_a_6.jsonl.gz": {Data: zipped(t, `{"topic":"t","value":"!","value_encoding":"base64"}`), Mode: 0o600},
		".1_a_7.jsonl.gz.tmp": {Data: whole, Mode: 0o600}, "corrupt/1_a_8.jsonl.gz": {Data: whole, Mode: 0o600}, ".lock": {}, "notes": {Mode: 0o644},
		"1_a_9.jsonl.gz": {Mode: fs.ModeNamedPipe | 0o600},
	}
	dir, found, err := ReadSpool(files, "spool")
	if err != nil || len(found) != 2 || found[0].Place != (Place{"logs", 1, 2, -1}) || found[0].Home != home.Spooled || found[0].Found != "spool/1_a_1.jsonl.gz" || found[0].Value != SumOf([]byte("v")) || found[0].To != "dlq" {
		t.Fatalf("%+v, %v", found, err)
	}
	broken := map[string]string{}
	for _, f := range dir.Files {
		if f.Broken != "" {
			broken[f.Name] = f.Broken
		}
	}
	if len(dir.Files) != 10 || len(broken) != 5 {
		t.Errorf("%d files, broken are %v", len(dir.Files), broken)
	}
	if dir, found, err := ReadSpool(os.DirFS(filepath.Join(t.TempDir(), "missing")), "x"); err != nil || found != nil || dir.Files != nil {
		t.Errorf("no directory reads as %v, %v, %v", dir, found, err)
	}
}

func TestReadSpool_FilesOfTheSpool(t *testing.T) {
	t.Parallel()
	w := perfect()
	f := w.forward(Place{source, 0, 3, 0}, home.Spooled, dlq, "syntax")
	dir := filepath.Join(t.TempDir(), "spool")
	spool, err := fallback.Open(fallback.Config{Dir: dir, Instance: "a", MaxBytes: 1 << 20}, fallback.OS(dir), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: dlq, Key: []byte("\xff"), Value: w.value[f.Place.record()], Timestamp: noon}
	if err := spool.Append(context.Background(), []fallback.Line{{Record: r}}); err != nil {
		t.Fatal(err)
	}
	if err := spool.Close(); err != nil {
		t.Fatal(err)
	}
	read, found, err := ReadSpool(os.DirFS(dir), dir)
	if err != nil || len(found) != 1 || found[0].Value != f.Value || found[0].Key != SumOf([]byte("\xff")) || !found[0].Stamp.Equal(noon) {
		t.Fatalf("%+v, %v", found, err)
	}
	if v := Decide(&Evidence{At: time.Now(), Spool: []SpoolDir{read}}, nil, nil).Of("I17"); v.State != Held || v.Checked < 3 {
		t.Errorf("%v: %+v", v, read)
	}
}
