package jobs

import (
	"context"
	"fmt"
	"time"

	"docket/internal/programs/cli/frame"
)

// noDesk is printed where no desk would do the work.
const noDesk = "no desk is running: nothing is sent until one runs (docket desk)"

// DeskWithin is how long ago a desk may have been heard of to count as running.
const DeskWithin = 10 * time.Second

// Running says whether a desk runs. Where none does it prints a remark.
func Running(ctx context.Context, call frame.Call) (bool, error) {
	desks, err := call.Sys.Book.Desks(ctx, DeskWithin)
	if err != nil {
		return false, fmt.Errorf("look for a desk: %w", err)
	}
	if len(desks) == 0 {
		call.Tell("%s\n", noDesk)
	}
	return len(desks) > 0, nil
}
