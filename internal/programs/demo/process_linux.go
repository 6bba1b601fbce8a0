package demo

import "syscall"

// procAttr puts a process into a group of its own, so that a Ctrl-C reaches us alone, and has it signalled when the
// thread that started it ends.
func procAttr(onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath}
}
