package archive

import (
	"context"
	"fmt"
)

// mounted refuses a directory that does not exist although the database needs archives: it is not mounted, or its name is
// wrong. An archive in a new directory would be on another disk, and hidden once the directory is mounted. The first archive
// makes its directory.
func mounted(ctx context.Context, shelf Shelf, needed func(context.Context) (bool, error)) error {
	place, ok := shelf.(interface{ Present() error })
	if !ok || place.Present() == nil {
		return nil
	}
	switch some, err := needed(ctx); {
	case err != nil:
		return err
	case !some:
		return nil
	}
	return &CannotError{fmt.Sprintf("%s cannot be used, and the database needs archives that were written before: %v", shelf, place.Present()),
		"mount it; if archives go to a new directory on purpose, make that by hand"}
}
