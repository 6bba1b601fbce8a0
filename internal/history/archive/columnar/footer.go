package columnar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// longBound is the length from which the least and greatest value of a group are left out of the description. The
// bounds of pages, which are cut off, still tell them. A payload can have a path of megabytes, and each group would
// repeat it in a description that readers have in memory.
const longBound = 1 << 10

// output passes on what it gets, or holds it back.
type output struct {
	to    io.Writer
	held  *bytes.Buffer // nil: nothing is held back
	bytes int64         // passed on
}

func (o *output) Write(b []byte) (n int, err error) {
	if o.held != nil {
		return o.held.Write(b)
	}
	n, err = o.to.Write(b)
	o.bytes += int64(n)
	return n, err
}

// end writes what was held back, which ends with the description. Long values are left out of it.
func (o *output) end() error {
	const frame = 8
	data := o.held.Bytes()
	o.held = nil
	if len(data) < frame {
		return fmt.Errorf("shorten the description: it is not there")
	}
	start := len(data) - int(footerOf(data))
	if start < 0 {
		return fmt.Errorf("shorten the description: it is not whole")
	}
	var m format.FileMetaData
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, data[start:len(data)-frame], &m); err != nil {
		return fmt.Errorf("shorten the description: %w", err)
	}
	for g := range m.RowGroups {
		for c := range m.RowGroups[g].Columns {
			if s := &m.RowGroups[g].Columns[c].MetaData.Statistics; len(s.MinValue) > longBound || len(s.MaxValue) > longBound {
				s.Min, s.Max, s.MinValue, s.MaxValue = nil, nil, nil, nil
			}
		}
	}
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &m)
	if err != nil {
		return fmt.Errorf("shorten the description: %w", err)
	}
	all := append(data[:start:start], b...)
	all = append(binary.LittleEndian.AppendUint32(all, uint32(len(b))), data[len(data)-4:]...)
	_, err = o.Write(all)
	return err
}
