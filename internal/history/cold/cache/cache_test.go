package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"docket/internal/history/archive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is a shelf that counts what is read of it.
type far struct {
	archive.Shelf
	files        map[string][]byte
	gets, ranges atomic.Int64
	cut          int64 // a whole file ends here with an error; 0: nowhere
}

func (f *far) Get(_ context.Context, name string) (io.ReadCloser, error) {
	f.gets.Add(1)
	if f.cut > 0 {
		return io.NopCloser(io.MultiReader(bytes.NewReader(f.files[name][:f.cut]), broken{})), nil
	}
	return io.NopCloser(bytes.NewReader(f.files[name])), nil
}

func (f *far) Range(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	f.ranges.Add(1)
	data := f.files[name]
	return io.NopCloser(bytes.NewReader(data[min(offset, int64(len(data))):min(offset+length, int64(len(data)))])), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection was lost") }

// world is files of an archive on a far shelf.
func world(sizes ...int) (*far, *archive.Manifest) {
	f, m := &far{files: map[string][]byte{}}, &archive.Manifest{Day: "2026-08-01"}
	for i, n := range sizes {
		data := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(n), byte(n >> 8)}).Read(data)
		sum := sha256.Sum256(data)
		name := fmt.Sprintf("file-%d", i)
		f.files[name] = data
		m.Files = append(m.Files, archive.File{Name: name, Bytes: int64(n), SHA256: hex.EncodeToString(sum[:])})
	}
	return f, m
}

func opening(t testing.TB, dir string, most int64) *Cache {
	t.Helper()
	c, err := Open(Config{Dir: dir, Bytes: most})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// all reads a whole file, or a part.
func all(t testing.TB, r io.ReadCloser, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// used is the bytes of all files of the cache.
func used(t testing.TB, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// TestShelf_SameBytesFromCache: whatever part is asked for, the cache has the bytes of the shelf, and the shelf is not
// asked.
func TestShelf_SameBytesFromCache(t *testing.T) {
	t.Parallel()
	const size = 5*blockSize/2 + 17
	f, m := world(size)
	c := opening(t, t.TempDir(), 1<<20)
	s := c.Over(f, m)
	data := f.files["file-0"]
	for range 2 {
		r, err := s.Get(t.Context(), "file-0")
		if got := all(t, r, err); !bytes.Equal(got, data) {
			t.Fatal("another file came")
		}
	}
	if f.gets.Load() != 1 {
		t.Errorf("the shelf was read %d times", f.gets.Load())
	}
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.Int64Range(0, size+10).Draw(rt, "from")
		n := rapid.Int64Range(0, size+10).Draw(rt, "bytes")
		r, err := s.Range(t.Context(), "file-0", from, n)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, data[min(from, size):min(from+n, size)]) {
			rt.Fatalf("%d bytes, %v", len(got), err)
		}
	})
	if f.ranges.Load() != 0 {
		t.Errorf("the shelf was asked for %d parts", f.ranges.Load())
	}
}

// TestShelf_DamageIsReadFromShelf: whatever happens to a cached file, the right bytes come, and the file is removed.
func TestShelf_DamageIsReadFromShelf(t *testing.T) {
	t.Parallel()
	const size = 3*blockSize + 100
	f, m := world(size)
	data := f.files["file-0"]
	harm := map[string]func(b []byte) []byte{
		"a bit in the first block": func(b []byte) []byte { b[5] ^= 1; return b },
		"a bit in the last block":  func(b []byte) []byte { b[size-1] ^= 128; return b },
		"a checksum":               func(b []byte) []byte { b[size+5] ^= 1; return b },
		"cut off":                  func(b []byte) []byte { return b[:len(b)-1] },
		"longer":                   func(b []byte) []byte { return append(b, 0) },
		"empty":                    func([]byte) []byte { return nil },
		"blocks that changed places": func(b []byte) []byte {
			one := slices.Clone(b[:blockSize])
			copy(b, b[blockSize:2*blockSize])
			copy(b[blockSize:], one)
			return b
		},
	}
	for name, change := range harm {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := opening(t, dir, 1<<20)
			s := c.Over(f, m)
			path, _ := c.path(m.Files[0])
			for _, part := range []func() (io.ReadCloser, error){
				func() (io.ReadCloser, error) { return s.Get(t.Context(), "file-0") },
				func() (io.ReadCloser, error) { return s.Range(t.Context(), "file-0", 0, size) },
			} {
				r, err := s.Get(t.Context(), "file-0")
				all(t, r, err)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, change(b), 0o600); err != nil {
					t.Fatal(err)
				}
				r, err = part()
				if got := all(t, r, err); !bytes.Equal(got, data) {
					t.Error("damaged bytes came")
				}
				if b, err := os.ReadFile(path); err == nil && int64(len(b)) != stored(size) {
					t.Error("the damaged file stays")
				}
				if o, err := open(path, m.Files[0]); err == nil { // it was kept once more, and whole
					for n := range blocks(size) {
						if _, err := o.block(n); err != nil {
							t.Error("the damaged file stays")
						}
					}
					_ = o.file.Close()
				}
			}
		})
	}
}

// TestThrough_OnlyTheManifestsFile: another file than that of the manifest is passed on, and not kept.
func TestThrough_OnlyTheManifestsFile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *far, m *archive.Manifest){
		"other bytes": func(f *far, _ *archive.Manifest) { f.files["file-0"][7] ^= 1 },
		"longer":      func(f *far, _ *archive.Manifest) { f.files["file-0"] = append(f.files["file-0"], 1) },
		"shorter":     func(f *far, _ *archive.Manifest) { f.files["file-0"] = f.files["file-0"][1:] },
		"lost":        func(f *far, _ *archive.Manifest) { f.cut = 1000 },
		"no checksum": func(_ *far, m *archive.Manifest) { m.Files[0].SHA256 = "../../x" },
		"no size":     func(_ *far, m *archive.Manifest) { m.Files[0].Bytes = -1 },
		"too large":   func(_ *far, m *archive.Manifest) { m.Files[0].Bytes = 1 << 40 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f, m := world(2*blockSize + 5)
			c := opening(t, dir, 1<<20)
			change(f, m)
			r, err := c.Over(f, m).Get(t.Context(), "file-0")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if (err != nil) != (f.cut > 0) || err == nil && !bytes.Equal(got, f.files["file-0"]) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if n := used(t, dir); n != 0 {
				t.Errorf("%d bytes are kept", n)
			}
		})
	}
}

// TestCache_NeverBeyondTheBound: whatever is asked, killed and left, by several users of the directory at once, all files
// together stay within the bound.
func TestCache_NeverBeyondTheBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		sizes := rapid.SliceOfN(rapid.IntRange(1, 3*blockSize), 1, 8).Draw(rt, "sizes")
		most := rapid.Int64Range(1, 6*blockSize).Draw(rt, "bound")
		f, m := world(sizes...)
		at := time.Now()
		var caches []*Cache
		for range 2 {
			c, err := Open(Config{Dir: dir, Bytes: most, Now: func() time.Time { return at }})
			if err != nil {
				rt.Fatal(err)
			}
			caches = append(caches, c)
		}
		slow := map[string]io.ReadCloser{} // by file, readings that are not at their end
		end := func(name string, r io.ReadCloser) {
			if _, err := io.Copy(io.Discard, r); err != nil {
				rt.Fatal(err)
			}
			if err := r.Close(); err != nil {
				rt.Fatal(err)
			}
			delete(slow, name)
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "minutes")) * time.Minute)
			c := rapid.SampledFrom(caches).Draw(rt, "process")
			of := rapid.SampledFrom(m.Files).Draw(rt, "file")
			switch rapid.IntRange(0, 5).Draw(rt, "act") {
			case 0, 1:
				r, err := c.Over(f, m).Get(t.Context(), of.Name)
				if got := all(t, r, err); !bytes.Equal(got, f.files[of.Name]) {
					rt.Fatal("another file came")
				}
			case 2: // killed half way: its file stays, and its lock is gone
				if k := c.through(io.NopCloser(bytes.NewReader(nil)), of); k.file != nil {
					_ = k.file.Close()
				}
			case 3:
				c.asked(f, of, m.Day)
			case 4: // a question that reads slowly
				if slow[of.Name] != nil {
					continue
				}
				r, err := c.Over(f, m).Get(t.Context(), of.Name)
				if err == nil {
					_, err = io.ReadFull(r, make([]byte, 1))
				}
				if err != nil {
					rt.Fatal(err)
				}
				slow[of.Name] = r
			default:
				if r := slow[of.Name]; r != nil {
					end(of.Name, r)
				}
			}
			if n := used(t, dir); n > most {
				rt.Fatalf("%d bytes, and the bound is %d", n, most)
			}
		}
		for name, r := range slow {
			end(name, r)
		}
		if n := used(t, dir); n > most {
			rt.Fatalf("%d bytes, and the bound is %d", n, most)
		}
	})
}

// TestOpen_CleansUp: leftovers of killed processes and what is beyond the bound go, the oldest first. A file that another
// process writes at the moment stays, and so does a file of somebody else.
func TestOpen_CleansUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, m := world(blockSize, blockSize+1, blockSize+2, blockSize+3)
	c := opening(t, dir, 1<<20)
	for i, of := range m.Files[:2] {
		r, err := c.Over(f, m).Get(t.Context(), of.Name)
		all(t, r, err)
		path, _ := c.path(of)
		at := time.Now().Add(time.Duration(i-5) * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	killed, living := c.through(io.NopCloser(bytes.NewReader(nil)), m.Files[2]), c.through(io.NopCloser(bytes.NewReader(nil)), m.Files[3])
	if err := killed.file.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "files", "notes.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	opening(t, dir, stored(blockSize+1)+stored(blockSize+3))
	var have []string
	for i, of := range m.Files {
		path, _ := c.path(of)
		for _, name := range []string{path, strings.TrimSuffix(path, fileSuffix) + tempSuffix} {
			if _, err := os.Stat(name); err == nil {
				have = append(have, fmt.Sprint(i, filepath.Ext(name)))
			}
		}
	}
	if !slices.Equal(have, []string{"1.part", "3.tmp"}) {
		t.Errorf("%v are left", have)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
}

// TestCache_HotFilesStay: a file that was asked for just now is not pushed out by another.
func TestCache_HotFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, m := world(blockSize, blockSize+1)
	at := time.Now()
	c, err := Open(Config{Dir: dir, Bytes: stored(blockSize + 1), Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	get := func(n int) {
		r, err := c.Over(f, m).Get(t.Context(), m.Files[n].Name)
		all(t, r, err)
	}
	has := func(n int) bool {
		path, _ := c.path(m.Files[n])
		_, err := os.Stat(path)
		return err == nil
	}
	get(0)
	get(1)
	if !has(0) || has(1) {
		t.Error("the hot file left")
	}
	at = at.Add(hot + time.Minute)
	get(1)
	if has(0) || !has(1) {
		t.Error("the file that nobody asks for stays")
	}
}

// TestRun_FetchesWhatIsAskedOften: the third question within an hour brings the file, in the background.
func TestRun_FetchesWhatIsAskedOften(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f, m := world(blockSize + 1)
		claims, free := 0, false
		c, err := Open(Config{Dir: dir, Bytes: 1 << 20, Claim: func(ctx context.Context, day, file string, _ bool) (context.Context, func(), bool) {
			if claims++; day != "2026-08-01" || file != "file-0" {
				t.Errorf("%s, %s", day, file)
			}
			return ctx, func() { claims += 10 }, free
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		s := c.Over(f, m)
		ask := func(times int, apart time.Duration, want int64) {
			t.Helper()
			for range times {
				s.Asked("file-0")
				time.Sleep(apart)
			}
			synctest.Wait()
			if f.gets.Load() != want {
				t.Errorf("fetched %d times, want %d", f.gets.Load(), want)
			}
		}
		ask(10, time.Hour, 0) // not often
		ask(2, time.Second, 0)
		time.Sleep(2 * time.Hour)
		ask(3, time.Second, 0) // another process has the claim
		free = true
		ask(3, time.Second, 1)
		if claims != 12 {
			t.Errorf("%d", claims)
		}
		r, err := s.Range(t.Context(), "file-0", 5, 10)
		if got := all(t, r, err); !bytes.Equal(got, f.files["file-0"][5:15]) || f.ranges.Load() != 0 {
			t.Error("the shelf was asked")
		}
		ask(5, time.Second, 1) // it is there
		s.Asked("nothing")
		cancel()
		running.Wait()
	})
}

// TestCache_SharedByProcesses: users of one directory write a file once, and each reads the right bytes meanwhile.
func TestCache_SharedByProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, m := world(20*blockSize, 30*blockSize)
	var asked sync.WaitGroup
	for i := range 8 {
		c := opening(t, dir, stored(30*blockSize))
		asked.Go(func() {
			for n := range 20 {
				of := m.Files[(i+n)%2]
				r, err := c.Over(f, m).Get(t.Context(), of.Name)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, f.files[of.Name]) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				if err := c.locked(func() error {
					if n := used(t, dir); n > stored(30*blockSize) {
						t.Errorf("%d bytes are used", n)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asked.Wait()
}

// TestOpen_FaultsAreNoErrorsLater: a directory that is gone or read-only costs reads of the shelf.
func TestOpen_FaultsAreNoErrorsLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, m := world(blockSize)
	c := opening(t, dir, 1<<20)
	if err := os.RemoveAll(filepath.Join(dir, "files")); err != nil {
		t.Fatal(err)
	}
	s := c.Over(f, m)
	s.Asked("file-0")
	for range 2 {
		r, err := s.Get(t.Context(), "file-0")
		if got := all(t, r, err); !bytes.Equal(got, f.files["file-0"]) {
			t.Error("another file came")
		}
	}
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: file, Bytes: 1}); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("%v", err)
	}
}

// TestGet_QuestionTakesTheFetchOver: a question claims the file with high priority until it has read it.
func TestGet_QuestionTakesTheFetchOver(t *testing.T) {
	t.Parallel()
	f, m := world(blockSize + 1)
	var held, claimed int
	c, err := Open(Config{Dir: t.TempDir(), Bytes: 1 << 20, Claim: func(ctx context.Context, _, file string, high bool) (context.Context, func(), bool) {
		if !high || file != "file-0" {
			t.Errorf("claimed %s, high %v", file, high)
		}
		held, claimed = held+1, claimed+1
		return ctx, func() { held-- }, false // another question has it: this one reads all the same
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Over(f, m)
	for i := range 2 { // the second question finds the file in the cache
		r, err := s.Get(t.Context(), "file-0")
		if i == 0 && held != 1 {
			t.Errorf("%d held while it reads", held)
		}
		if got := all(t, r, err); !bytes.Equal(got, f.files["file-0"]) {
			t.Error("other bytes")
		}
		if held != 0 || claimed != 1 {
			t.Fatalf("%d held, %d claimed", held, claimed)
		}
	}
}
