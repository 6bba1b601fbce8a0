//go:build unix && !linux

package demo

import "syscall"

// procAttr puts a process into a group of its own, so that Ctrl-C reaches only this program. There is no signal on the
// death of its parent here: the next demo stops the processes of a killed one.
func procAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
