package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"docket/internal/history/archive"
)

// blockSize is what a checksum is of. A read verifies the blocks that it touches.
const blockSize = 64 << 10

const sumSize = 4

var table = crc32.MakeTable(crc32.Castagnoli)

// blocks is the number of blocks of a file.
func blocks(bytes int64) int64 { return (bytes + blockSize - 1) / blockSize }

// stored is the size of a cached file: its bytes, then the checksums.
func stored(bytes int64) int64 { return bytes + sumSize*blocks(bytes) }

// errDamaged says that a cached file is not what was written.
var errDamaged = errors.New("the cached file is damaged")

// writer writes the bytes of a file and its checksums.
type writer struct {
	to    io.WriterAt
	of    archive.File
	at    int64
	block []byte
	sums  []byte
	whole hash.Hash
}

func newWriter(to io.WriterAt, of archive.File) *writer {
	return &writer{to: to, of: of, block: make([]byte, 0, blockSize), whole: sha256.New()}
}

func (w *writer) Write(b []byte) (n int, err error) {
	n = len(b)
	for len(b) > 0 {
		k := min(blockSize-len(w.block), len(b))
		w.block = append(w.block, b[:k]...)
		if b = b[k:]; len(w.block) == blockSize {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (w *writer) flush() error {
	if w.at+int64(len(w.block)) > w.of.Bytes {
		return errDamaged // more than the manifest says, and more than there is room for
	}
	if _, err := w.to.WriteAt(w.block, w.at); err != nil {
		return err
	}
	w.whole.Write(w.block)
	w.sums = binary.LittleEndian.AppendUint32(w.sums, crc32.Checksum(w.block, table))
	w.at += int64(len(w.block))
	w.block = w.block[:0]
	return nil
}

// end writes the checksums, if the file is that of the manifest.
func (w *writer) end() error {
	if len(w.block) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.at != w.of.Bytes || hex.EncodeToString(w.whole.Sum(nil)) != w.of.SHA256 {
		return errDamaged
	}
	_, err := w.to.WriteAt(w.sums, w.at)
	return err
}

// opened is a cached file that is read.
type opened struct {
	file *os.File
	of   archive.File
	sum  [sumSize]byte
	data [blockSize]byte
}

// open opens a cached file; nil: it is not there. One of another size is damaged.
func open(path string, of archive.File) (*opened, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != stored(of.Bytes) {
		err = errDamaged
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &opened{file: f, of: of}, nil
}

// block returns a verified block. It is valid until the next call.
func (o *opened) block(n int64) ([]byte, error) {
	data := o.data[:min(blockSize, o.of.Bytes-n*blockSize)]
	if _, err := o.file.ReadAt(data, n*blockSize); err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	if _, err := o.file.ReadAt(o.sum[:], o.of.Bytes+n*sumSize); err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	if binary.LittleEndian.Uint32(o.sum[:]) != crc32.Checksum(data, table) {
		return nil, errDamaged
	}
	return data, nil
}
