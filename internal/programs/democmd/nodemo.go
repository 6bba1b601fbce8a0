//go:build nodemo

package democmd

import (
	"fmt"

	"docket/internal/programs/cli"
)

// run says where the demo is.
func run(env cli.Env, _ []string) int {
	fmt.Fprintf(env.Stderr, "%s: demo: this program is built without the demo\nIn a clone of the source, `make demo` builds and runs it; `go run ./cmd/docket demo` does the same.\n", env.Called())
	return cli.Misuse
}
