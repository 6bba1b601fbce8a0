//go:build profiled

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
)

// With the tag profiled, the program writes profiles into the folder DOCKET_PROFILE_DIR: CPU until SIGUSR1, then
// allocations, and last an empty file "done". `make bench ONLY=profile` does that.
func init() {
	dir := os.Getenv("DOCKET_PROFILE_DIR")
	if dir == "" {
		return
	}
	runtime.MemProfileRate = 64 << 10
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	cpu := create(dir, "cpu")
	if err := pprof.StartCPUProfile(cpu); err != nil {
		panic(err)
	}
	go func() {
		<-signals
		pprof.StopCPUProfile()
		_ = cpu.Close()
		allocations := create(dir, "allocs")
		_ = pprof.Lookup("allocs").WriteTo(allocations, 0)
		_ = allocations.Close()
		_ = create(dir, "done").Close()
	}()
}

func create(dir, name string) *os.File {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		panic(err)
	}
	return f
}
