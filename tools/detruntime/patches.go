package main

// patch replaces one place of the toolchain, or as many as times says.
type patch struct {
	file, old, new string
	times          int
}

// after is a patch that adds lines behind a place.
func after(file, place, lines string) patch {
	return patch{file: file, old: place, new: place + lines}
}

var patches = []patch{
	// A process starts from a fixed seed, so that what is made before the first schedule is the same in each.
	{file: "runtime/rand.go", old: "\tseed := &globalRand.seed\n\tif len(startupRand) >= 16 &&", new: "\tseed := &globalRand.seed\n\tif seed[0] = 1; true {\n\t} else if len(startupRand) >= 16 &&"},
	after("runtime/rand.go", "func rand() uint64 {\n", "\tif x, ok := exactRand(); ok {\n\t\treturn x\n\t}\n"),
	after("crypto/internal/sysrand/rand.go", "func Read(b []byte) {\n", "\tif exactRead(b) {\n\t\treturn\n\t}\n"),
	after("crypto/internal/sysrand/rand.go", "var firstUse atomic.Bool\n", "\n//go:linkname exactRead\nfunc exactRead(b []byte) bool\n"),

	// The next goroutine to run.
	after("runtime/runtime2.go", "\tvalgrindStackID uintptr\n", "\n\texactID uint64\n\texactFill int32\n\texactState [3]uint64\n\texactStep uint64\n"),
	after("runtime/proc.go", "\t\t// Only user goroutines inherit synctest groups and pprof labels.\n\t\tnewg.bubble = callergp.bubble\n", "\t\tnewg.exactID = exactBirth(newg)\n"),
	after("runtime/proc.go", "func runqput(pp *p, gp *g, next bool) {\n", "\tif exactPut(gp, next) {\n\t\treturn\n\t}\n"),
	{file: "runtime/proc.go", old: "\tassertLockHeld(&sched.lock)\n\n\tsched.runq.pushBack(gp)\n", new: "\tassertLockHeld(&sched.lock)\n\n\tif exactPut(gp, false) {\n\t\treturn\n\t}\n\tsched.runq.pushBack(gp)\n"},
	after("runtime/proc.go", "func runqget(pp *p) (gp *g, inheritTime bool) {\n", "\tif gp := exactGet(pp); gp != nil {\n\t\treturn gp, false\n\t}\n"),
	after("runtime/proc.go", "func runqempty(pp *p) bool {\n", "\tif !exactEmpty() {\n\t\treturn false\n\t}\n"),
	{file: "runtime/synctest.go", old: "\tgp.bubble = bubble\n\tdefer func() {\n", new: "\tgp.bubble = bubble\n\tdefer func() {\n\t\texactEnd(bubble)\n"},
	{file: "runtime/proc.go", old: "\t\tif retake(now) != 0 {\n", new: "\t\tif exactRetake(now) != 0 {\n"},
	after("runtime/proc.go", "func preemptone(pp *p) bool {\n", "\tif exactKeep(pp) {\n\t\treturn false\n\t}\n"),

	{file: "runtime/proc.go", old: "\t\tthread, ok := setBlockOnExitSyscall(pp)\n", new: "\t\tthread, ok := setBlockOnExitSyscall(pp)\n\t\tif ok && exactKeep(pp) {\n\t\t\tthread.resume()\n\t\t\tgoto done\n\t\t}\n"},
	{file: "runtime/preempt.go", old: "\treturn mp.locks == 0 && mp.mallocing == 0 &&", new: "\treturn !exactKeepM(mp) && mp.locks == 0 && mp.mallocing == 0 &&"},

	// Where a goroutine can be put off.
	{file: "runtime/proc.go", old: "\t\tif mainStarted {\n\t\t\twakep()\n\t\t}\n\t})\n}\n", new: "\t\tif mainStarted {\n\t\t\twakep()\n\t\t}\n\t})\n\texactYield()\n}\n"},
	after("runtime/chan.go", "func chansend(c *hchan, ep unsafe.Pointer, block bool, callerpc uintptr) bool {\n", "\texactYield()\n"),
	after("runtime/chan.go", "func chanrecv(c *hchan, ep unsafe.Pointer, block bool) (selected, received bool) {\n", "\texactYield()\n"),
	after("runtime/chan.go", "func closechan(c *hchan) {\n", "\texactYield()\n"),
	after("runtime/select.go", "func selectgo(cas0 *scase, order0 *uint16, pc0 *uintptr, nsends, nrecvs int, block bool) (int, bool) {\n", "\texactYield()\n"),
	after("internal/sync/mutex.go", "func (m *Mutex) Lock() {\n", "\texactLock(unsafe.Pointer(m))\n"),
	// A cache that is filled once in a process must not shift what comes after: nobody is put off meanwhile.
	{file: "internal/sync/hashtriemap.go", old: "mu.Lock()", new: "mu.lockQuietly()", times: 5},
	after("internal/sync/mutex.go", "type Mutex struct {\n\tstate int32\n\tsema  uint32\n}\n", "\nfunc (m *Mutex) lockQuietly() {\n\tif !atomic.CompareAndSwapInt32(&m.state, 0, mutexLocked) {\n\t\tm.lockSlow()\n\t}\n}\n"),
	{file: "sync/once.go", old: "func (o *Once) doSlow(f func()) {\n", new: "//go:linkname exactFill\nfunc exactFill(o unsafe.Pointer) bool\n\n//go:linkname exactFilled\nfunc exactFilled()\n\nfunc (o *Once) doSlow(f func()) {\n\tif exactFill(unsafe.Pointer(o)) {\n\t\tdefer exactFilled()\n\t}\n"},
	{file: "sync/once.go", old: "import (\n", new: "import (\n\t\"unsafe\"\n"},
	{file: "sync/oncefunc.go", old: "\t\td.once.Do(func() {\n", new: "\t\tif !d.once.done.Load() && exactFill(nil) {\n\t\t\tdefer exactFilled()\n\t\t}\n\t\td.once.Do(func() {\n", times: 3},
	{file: "internal/sync/runtime.go", old: "import _ \"unsafe\"\n", new: "import \"unsafe\"\n"},
	after("internal/sync/runtime.go", "func runtime_nanotime() int64\n", "\n//go:linkname exactLock\nfunc exactLock(m unsafe.Pointer)\n"),

	// Which case, which timer, which slot comes first, and which waiter starves.
	{file: "runtime/select.go", old: "cheaprandn(uint32(norder + 1))", new: "exactDrawn(uint32(norder + 1))"},
	{file: "runtime/time.go", old: "t.rand = cheaprand()", new: "t.rand = exactDraw()"},
	{file: "runtime/sema.go", old: "func internal_sync_nanotime() int64 {\n\treturn nanotime()\n", new: "func internal_sync_nanotime() int64 {\n\treturn exactNanotime()\n"},
	{file: "internal/runtime/maps/map.go", old: "m.seed = uintptr(rand())", new: "m.seed = uintptr(exactMapSeed())", times: 4},
	after("internal/runtime/maps/runtime.go", "//go:linkname rand\nfunc rand() uint64\n", "\n//go:linkname exactMapSeed\nfunc exactMapSeed() uint64\n\n//go:linkname exactIter\nfunc exactIter() uint64\n\n//go:linkname exactStray\nfunc exactStray()\n"),
	{file: "internal/runtime/maps/table.go", old: "\tit.entryOffset = rand()\n\tit.dirOffset = rand()\n", new: "\tit.entryOffset = exactIter()\n\tit.dirOffset = exactIter()\n\tif k := typ.Key.Kind(); m.dirLen > 0 && m.used > 1 &&\n\t\t(k == abi.Pointer || k == abi.Chan || k == abi.UnsafePointer || k == abi.Interface) {\n\t\texactStray()\n\t}\n"},

	// A context is told of its children by address; here, in the order in which they were made.
	{file: "context/context.go", old: "children map[canceler]struct{} // set", new: "children []canceler // set"},
	{file: "context/context.go", old: "\t\t\tif p.children == nil {\n\t\t\t\tp.children = make(map[canceler]struct{})\n\t\t\t}\n\t\t\tp.children[child] = struct{}{}\n", new: "\t\t\tp.children = append(p.children, child)\n"},
	{file: "context/context.go", old: "\t\tdelete(p.children, child)\n", new: "\t\tfor i := len(p.children) - 1; i >= 0; i-- {\n\t\t\tif p.children[i] == child {\n\t\t\t\tcopy(p.children[i:], p.children[i+1:])\n\t\t\t\tp.children[len(p.children)-1] = nil\n\t\t\t\tp.children = p.children[:len(p.children)-1]\n\t\t\t\tbreak\n\t\t\t}\n\t\t}\n"},
	{file: "context/context.go", old: "\tfor child := range c.children {\n", new: "\tfor _, child := range c.children {\n"},
}
