package demo

import "syscall"

// procAttr puts a process into a group of its own, so that Ctrl-C reaches only this program. The process gets a signal when the
// thread that started it ends.
func procAttr(onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath}
}
