package columnar

import (
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// field is a column under its name. Values never come from Go structures.
type field struct {
	parquet.Node
	name string
}

func (f *field) Name() string { return f.name }

// Value is of no use here.
func (f *field) Value(base reflect.Value) reflect.Value { return base }

// GoType is any: rows are written as values.
func (g *group) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }
