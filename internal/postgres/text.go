package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// milliseconds is d as a setting of the server has it, and 1 at least: 0 would mean no limit.
func milliseconds(d time.Duration) []byte {
	return strconv.AppendInt(nil, max(d.Milliseconds(), 1), 10)
}

// arg appends an argument and gives its place, as in $3.
func arg(args *[]any, value any) string {
	*args = append(*args, value)
	return fmt.Sprintf("$%d", len(*args))
}

// validText is s as Postgres's text can hold it.
func validText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}
