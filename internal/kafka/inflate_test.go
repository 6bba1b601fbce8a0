package kafka

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/kafkatest"
)

func inflating(t testing.TB, most int) *inflater {
	t.Helper()
	f, err := newInflater(newSpare(most, newRoom(SourceConfig{BufferBytes: 1 << 40})))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func framed(t testing.TB, content []byte, options ...lz4.Option) []byte {
	t.Helper()
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	if err := errors.Join(w.Apply(options...), func() error { _, err := w.Write(content); return err }(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return frame.Bytes()
}

// contents are bytes that compress well, badly and not at all, of all sizes around that of a block.
func contents() map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	lines := bytes.Repeat([]byte(`{"decision_id":"a","path":"b/c","result":true}`), 9000)
	return map[string][]byte{
		"nothing": {}, "a byte": {7}, "noise": noise, "zeroes": make([]byte, 3<<20), "lines": lines,
		"one block": lines[:64<<10], "one more": lines[:64<<10+1], "both": append(append([]byte{}, lines...), noise...),
	}
}

func TestLZ4_Inflates(t *testing.T) {
	t.Parallel()
	f := inflating(t, 64<<20)
	for name, content := range contents() {
		for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
			for _, summed := range []bool{true, false} {
				frame := framed(t, content, lz4.BlockSizeOption(size), lz4.ChecksumOption(summed), lz4.SizeOption(uint64(len(content))))
				if _, ok := f.lz4(frame, f.most); !ok {
					t.Errorf("%s in blocks of %v is left to the client", name, size)
				}
				out, err := f.Decompress(frame, kgo.CodecLz4)
				if err != nil || !bytes.Equal(out, content) {
					t.Errorf("%s in blocks of %v: %d bytes of %d, %v", name, size, len(out), len(content), err)
				}
				f.spare.PutDecompressBytes(out)
			}
		}
	}
}

func TestLZ4_UnusualFramesAreLeftToTheClient(t *testing.T) {
	t.Parallel()
	f := inflating(t, 64<<20)
	content := contents()["lines"]
	plain := framed(t, content)
	legacy := framed(t, content, lz4.LegacyOption(true))
	for name, frame := range map[string][]byte{
		"block checksums": framed(t, content, lz4.BlockChecksumOption(true)), "legacy": legacy, "two frames": append(bytes.Clone(plain), plain...),
	} {
		if _, ok := f.lz4(frame, f.most); ok {
			t.Errorf("%s: read as one frame of the ordinary kind", name)
		}
		theirs, want := f.others.Decompress(frame, kgo.CodecLz4)
		out, err := f.Decompress(frame, kgo.CodecLz4)
		if !bytes.Equal(out, theirs) || (err == nil) != (want == nil) {
			t.Errorf("%s: %d bytes and %v, the client has %d and %v", name, len(out), err, len(theirs), want)
		}
	}
	for cut := range 40 {
		if _, err := f.Decompress(plain[:cut], kgo.CodecLz4); err == nil && cut > 0 {
			t.Errorf("the first %d bytes of a frame are taken for all of it", cut)
		}
	}
}

func TestInflate_Limit(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	f := inflating(t, most)
	for _, over := range []int{0, 1, 3 << 20} {
		for name, codec := range map[string]kgo.CompressionCodec{
			"lz4": kgo.Lz4Compression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "zstd": kgo.ZstdCompression(),
		} {
			compressor, err := kgo.DefaultCompressor(codec)
			if err != nil {
				t.Fatal(err)
			}
			content := bytes.Repeat([]byte("0123456789abcdef"), most/16+over/16+1)[:most+over]
			content[0] = 1 // not the length of a record: only the bytes count
			src, which := compressor.Compress(new(bytes.Buffer), content)
			out, err := f.Decompress(src, which)
			switch {
			case over == 0 && (err != nil || !bytes.Equal(out, content)):
				t.Errorf("%s: %d bytes of %d: %v", name, len(out), len(content), err)
			case over > 0 && !errors.Is(err, kgo.ErrMaxDecompress):
				t.Errorf("%s: %d bytes too many gave %v", name, over, err)
			}
			if _, ok := f.lz4(src, most); ok && over > 0 {
				t.Errorf("%s: %d bytes too many were inflated before they were refused", name, over)
			}
		}
	}
}

func TestGuess_HighRatioIsForgotten(t *testing.T) {
	t.Parallel()
	f := inflating(t, 64<<20)
	frame := framed(t, make([]byte, 32<<20))
	if _, err := f.Decompress(frame, kgo.CodecLz4); err != nil {
		t.Fatal(err)
	}
	if room := f.guess(256 << 10); room > 9*256<<10 {
		t.Errorf("room for %d bytes is made for a frame of %d", room, 256<<10)
	}
}

// A set that hardly inflates must not keep memory that was guessed for a high ratio. It lives as long as its records
// wait, and they count with the bytes that they have.
func TestGuess_TooHighIsGivenBack(t *testing.T) {
	t.Parallel()
	f := inflating(t, 64<<20)
	noise, zeroes := contents()["noise"], contents()["zeroes"]
	for name, codec := range map[string]kgo.CompressionCodec{
		"lz4": kgo.Lz4Compression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "zstd": kgo.ZstdCompression(),
	} {
		compressor, err := kgo.DefaultCompressor(codec)
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range [][]byte{zeroes, noise, zeroes, noise[:70<<10], noise[:1000]} {
			src, which := compressor.Compress(new(bytes.Buffer), content)
			out, err := f.Decompress(bytes.Clone(src), which)
			if err != nil || !bytes.Equal(out, content) {
				t.Fatalf("%s: %d bytes of %d: %v", name, len(out), len(content), err)
			}
			if cap(out) > 2*len(out)+4<<10 {
				t.Errorf("%s: %d bytes lie in %d", name, len(out), cap(out))
			}
		}
	}
}

func TestGuess_Limit(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	f := inflating(t, most)
	large := make([]byte, 4*most)
	if room := cap(f.spare.GetDecompressBytes(large, kgo.CodecZstd)); room > 2*most {
		t.Errorf("a set that may inflate to %d bytes is given %d", most, room)
	}
	if room := f.guess(len(large)); room > 2*most {
		t.Errorf("a set that may inflate to %d bytes is given %d", most, room)
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestSpare_InflatesIntoUsedMemory(t *testing.T) {
	f := inflating(t, 64<<20)
	var frames [][]byte
	for _, n := range []int{100, 3000, 900, 7000} {
		frames = append(frames, framed(t, contents()["lines"][:n*46]))
	}
	if n := testing.AllocsPerRun(20, func() {
		for _, frame := range frames {
			out, err := f.Decompress(frame, kgo.CodecLz4)
			if err != nil {
				t.Fatal(err)
			}
			f.spare.PutDecompressBytes(out)
		}
	}); n > 0 {
		t.Errorf("%v allocations for %d sets of records, want none", n, len(frames))
	}
}

func TestSpare_KeepsNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	s := slabs[byte]{most: 1 << 20}
	for i := range 1000 {
		s.give(make([]byte, 0, 1+i*1000))
		sum := 0
		for _, slab := range s.free {
			sum += cap(slab)
		}
		if sum != s.kept || sum > s.most || len(s.free) > mostSlabs {
			t.Fatalf("%d slices of %d bytes are kept, counted as %d, at most %d", len(s.free), sum, s.kept, s.most)
		}
	}
	for _, n := range []int{1, 70_000, 200_000, 900_000} {
		if slab := s.take(n); cap(slab) < n || len(slab) != 0 {
			t.Errorf("asked for %d bytes: %d of %d", n, len(slab), cap(slab))
		}
	}
	kept := s.kept
	s.give(make([]byte, 0, 1<<20))
	if s.kept != kept {
		t.Error("a slice of more than half of the share is kept")
	}
}

func TestSpare_RecordsAreCleared(t *testing.T) {
	t.Parallel()
	s := newSpare(1<<20, newRoom(SourceConfig{}))
	used := make([]kgo.Record, 8)
	for i := range used {
		used[i] = kgo.Record{Value: []byte("v"), Topic: "t"}
	}
	s.PutRecords(used[:3])
	for i, r := range s.GetRecords(8)[:8] {
		if r.Value != nil || r.Topic != "" {
			t.Errorf("record %d still holds what it was", i)
		}
	}
}

// FuzzLZ4 compares with the client's own decompressor.
func FuzzLZ4(f *testing.F) {
	for _, content := range contents() {
		f.Add(framed(f, content[:min(len(content), 2000)]))
		f.Add(framed(f, content[:min(len(content), 2000)], lz4.ChecksumOption(false), lz4.BlockSizeOption(lz4.Block64Kb)))
	}
	in := inflating(f, 1<<20)
	f.Fuzz(func(t *testing.T, src []byte) {
		theirs, want := in.others.Decompress(src, kgo.CodecLz4)
		out, ok := in.lz4(src, in.most)
		switch {
		case ok && want == nil && !bytes.Equal(out, theirs):
			t.Errorf("%d bytes, the client has %d", len(out), len(theirs))
		case ok && len(out) > in.most, ok && errors.Is(want, kgo.ErrMaxDecompress):
			t.Errorf("%d bytes, at most %d", len(out), in.most)
		case ok && want != nil && !errors.Is(want, lz4.ErrInvalidFrameChecksum) && !errors.Is(want, lz4.ErrInvalidHeaderChecksum):
			t.Errorf("the client refuses it: %v", want)
		}
	})
}

// TestInflater_PromisesRoomForRecords opens sets of tiny records, which take many times the memory of their bytes, as
// several brokers and lanes do: the client takes the records of one set after the next set is open.
func TestInflater_PromisesRoomForRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		var set []byte
		for i := range n {
			set = kafkatest.AppendRecord(set, i, nil, 0)
		}
		frame := framed(t, set)
		r := newRoom(SourceConfig{BufferBytes: n * recordSize}) // twice that is enough for one set, and not for two
		f, err := newInflater(newSpare(64<<20, r))
		if err != nil {
			t.Fatal(err)
		}
		first, err := f.Decompress(frame, kgo.CodecLz4)
		if err != nil {
			t.Fatal(err)
		}
		opened := r.used()
		if _, err := f.Decompress(frame, kgo.CodecLz4); !errors.Is(err, errNoRoom) {
			t.Fatalf("the second set took the room of the first one's records: %v", err)
		}
		records := f.spare.GetRecords(n)
		if got := r.used(); got != opened {
			t.Errorf("%d bytes are used with the records, %d were promised", got, opened)
		}
		runtime.KeepAlive(first)
		runtime.KeepAlive(records)

		// A set whose records the client never takes keeps the room for a moment.
		other := newRoom(SourceConfig{BufferBytes: n * recordSize})
		if f, err = newInflater(newSpare(64<<20, other)); err != nil {
			t.Fatal(err)
		}
		broken, err := f.Decompress(frame, kgo.CodecLz4)
		if err != nil {
			t.Fatal(err)
		}
		if other.refuse(n * recordSize); other.ease() {
			t.Error("the room was taken back at once")
		}
		if time.Sleep(promiseHolds + time.Millisecond); !other.ease() {
			t.Errorf("%d bytes are used for ever", other.used())
		}
		runtime.KeepAlive(broken)
	})
}
