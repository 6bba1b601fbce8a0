package decision

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func zip(t testing.TB, plain string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGunzip_MagicBytes(t *testing.T) {
	t.Parallel()
	d1 := good()
	d2 := strings.Replace(d1, "d1", "d2", 1)
	whole := zip(t, d1)
	damaged := func(at int) []byte {
		b := bytes.Clone(whole)
		b[(len(b)+at)%len(b)] ^= 0xff
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		value []byte
		want  string
	}{
		"one object":                     {whole, "d1 sole"},
		"array":                          {zip(t, "["+d1+","+d2+"]"), "d1 d2"},
		"lines":                          {zip(t, d1+"\n"+d2+"\n"), "d1 d2"},
		"members":                        {join(zip(t, d1+"\n"), zip(t, ""), zip(t, d2)), "d1 d2"},
		"a decision over two members":    {join(zip(t, d1[:9]), zip(t, d1[9:])), "d1 sole"},
		"nothing":                        {zip(t, ""), "refused: empty"},
		"white space":                    {zip(t, " \r\n"), "refused: empty"},
		"empty array":                    {zip(t, "[]"), "refused: empty"},
		"gzip in gzip":                   {zip(t, string(whole)), "refused: syntax"},
		"magic bytes alone":              {[]byte{0x1f, 0x8b}, "refused: syntax"},
		"half of the magic bytes":        {[]byte{0x1f}, "refused: syntax"},
		"torn header":                    {whole[:9], "refused: syntax"},
		"torn data":                      {whole[:len(whole)/2], "refused: syntax"},
		"torn trailer":                   {whole[:len(whole)-1], "refused: syntax"},
		"no trailer":                     {whole[:len(whole)-8], "refused: syntax"},
		"trailing byte":                  {join(whole, []byte{0}), "refused: syntax"},
		"trailing zeros":                 {join(whole, make([]byte, 512)), "refused: syntax"},
		"trailing text":                  {join(whole, []byte(d2+d2)), "refused: syntax"},
		"trailing magic bytes":           {join(whole, []byte{0x1f, 0x8b}), "refused: syntax"},
		"second member torn":             {join(whole, whole[:len(whole)-4]), "refused: syntax"},
		"wrong method":                   {damaged(2), "refused: syntax"},
		"wrong checksum":                 {damaged(-8), "refused: syntax"},
		"wrong size":                     {damaged(-4), "refused: syntax"},
		"white space before is not gzip": {join([]byte(" "), whole), "refused: syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := told(c.value, limit); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTooLarge_CountsAfterGunzip(t *testing.T) {
	t.Parallel()
	plain := good(`"a":"` + strings.Repeat("x", 100_000) + `"`)
	size := int64(len(plain))
	value := zip(t, plain)
	for _, c := range []struct {
		maxBytes int64
		want     string
	}{
		{math.MaxInt64, "d1 sole"}, {size + 1, "d1 sole"}, {size, "d1 sole"}, {size - 1, "refused: too_large"},
		{int64(len(value)), "refused: too_large"}, {0, "refused: too_large"}, {-1, "refused: too_large"},
	} {
		if got := told(value, c.maxBytes); got != c.want {
			t.Errorf("limit %d: got %q, want %q", c.maxBytes, got, c.want)
		}
	}
	if got := told(zip(t, ""), 0); got != "refused: empty" {
		t.Errorf("nothing fits into nothing: got %q", got)
	}
}

//nolint:paralleltest // it reads how much the process has allocated
func TestGunzip_BombIsNotInflated(t *testing.T) {
	bomb := zip(t, strings.Repeat(" ", 200<<20))
	liar := append(zip(t, good()), 0xff, 0xff, 0xff, 0xff)
	told(zip(t, good()), limit) // the decompressor's own windows
	for name, c := range map[string]struct {
		value    []byte
		maxBytes int64
	}{"bomb": {bomb, limit}, "a trailer that lies": {liar, 1 << 30}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		told(c.value, c.maxBytes)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 4*limit {
			t.Errorf("%s: allocated %d bytes", name, grown)
		}
	}
}

func TestGunzip_PoolKeepsNoRecord(t *testing.T) {
	t.Parallel()
	value := zip(t, good())
	for range 100 { // whatever else the pool returns meanwhile
		if _, refused := gunzip(value, 1<<20); refused != nil {
			t.Fatal(refused)
		}
		in := inflaters.Get().(*Inflater)
		if n := in.src.Size(); n != 0 {
			t.Fatalf("it still holds %d bytes of a record", n)
		}
		inflaters.Put(in)
	}
}
