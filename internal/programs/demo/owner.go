package demo

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner is who the inner process runs as.
type owner struct {
	uid, gid uint32
	other    bool // not the one that we run as
}

// unprivileged is ourselves, or nobody where we are root.
func unprivileged() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return owner{}, fmt.Errorf("Postgres refuses to run as root, and the account nobody is missing: %w", err)
	}
	uid, uerr := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(nobody.Gid, 10, 32)
	if uerr != nil || gerr != nil || uid == 0 {
		return owner{}, fmt.Errorf("the account nobody has unusable ids: %q, %q", nobody.Uid, nobody.Gid)
	}
	return owner{uid: uint32(uid), gid: uint32(gid), other: true}, nil
}

func (w owner) credential() *syscall.Credential {
	if !w.other {
		return nil
	}
	return &syscall.Credential{Uid: w.uid, Gid: w.gid}
}

func (w owner) own(path string) error {
	if !w.other {
		return nil
	}
	return os.Lchown(path, int(w.uid), int(w.gid))
}
