//go:build unix && !linux

package demo

import "syscall"

// procAttr puts a process into a group of its own, so that a Ctrl-C reaches us alone. There is no signal on the death
// of its parent here: what a killed demo leaves behind is stopped by the next one.
func procAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
