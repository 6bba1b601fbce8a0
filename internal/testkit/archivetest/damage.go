package archivetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"docket/internal/history/archive"
)

// ClearFilters empties the filters in the Parquet files of an archive in a directory, and corrects its manifest. So size
// and checksums are right, and look-ups by id do not find its rows.
func ClearFilters(ctx context.Context, dir string, m *archive.Manifest) error {
	for i := range m.Files {
		f := &m.Files[i]
		b, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		p, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return err
		}
		for _, g := range p.Metadata().RowGroups {
			for _, c := range g.Columns {
				if n := int64(c.MetaData.BloomFilterLength); n > 0 {
					clear(b[c.MetaData.BloomFilterOffset+n%32 : c.MetaData.BloomFilterOffset+n])
				}
			}
		}
		sum := sha256.Sum256(b)
		f.SHA256, f.Sums = hex.EncodeToString(sum[:]), nil
		if err := os.WriteFile(filepath.Join(dir, f.Name), b, 0o600); err != nil {
			return err
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return archive.Dir(dir).Put(ctx, m.Name()+".manifest.json", bytes.NewReader(b))
}
