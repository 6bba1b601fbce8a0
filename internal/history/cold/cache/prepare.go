package cache

import (
	"fmt"
	"os"
	"syscall"
)

// UnsafeError says that others may change what is in the directory, or that it is not a directory. Its files are answers to
// questions.
type UnsafeError struct{ Problem, Do string }

func (e *UnsafeError) Error() string { return "the directory of the cache is not used: " + e.Problem }

// Hint returns advice.
func (e *UnsafeError) Hint() string { return e.Do }

// Prepare makes the directory if it is missing. It refuses one that another user than this or root owns, or that its group or
// everybody may write to, with an [*UnsafeError]. A symbolic link to a directory is followed.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the cache: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return &UnsafeError{"it is not a directory", "name a directory in DOCKET_CACHE_DIR"}
	case !ok || !trusted(st.Uid, os.Geteuid()):
		return &UnsafeError{"another user owns it", "give DOCKET_CACHE_DIR a directory of the user of this program"}
	case info.Mode().Perm()&0o022 != 0:
		return &UnsafeError{fmt.Sprintf("its mode %04o lets others write there", info.Mode().Perm()), "set its mode to 0700, or name a directory below it that does not exist yet"}
	}
	return nil
}

// trusted reports whether the owner of a directory decides about this program anyway.
func trusted(owner uint32, user int) bool { return owner == 0 || int64(owner) == int64(user) }
