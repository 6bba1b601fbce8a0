package db

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Milliseconds is d as a setting of the server has it, and 1 at least: 0 would mean no limit.
func Milliseconds(d time.Duration) []byte {
	return strconv.AppendInt(nil, max(d.Milliseconds(), 1), 10)
}

// Arg appends an argument and gives its place, as in $3.
func Arg(args *[]any, value any) string {
	*args = append(*args, value)
	return fmt.Sprintf("$%d", len(*args))
}

// Text is s as Postgres's text can hold it.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}
