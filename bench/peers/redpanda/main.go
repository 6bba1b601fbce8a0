// Command redpanda-peer is the engine of Redpanda Connect with a Kafka input and a Postgres output of its own. It is no
// Redpanda Connect; ../README.md says what it is for. It stays free of Docket's code.
package main

import (
	"context"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
)

func main() {
	service.RunCLI(context.Background())
}
