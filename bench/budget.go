package bench

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sample is a moment in which perf looked at a processor: the process that had it, and the functions that it was in, the
// innermost first.
type Sample struct {
	PID   int
	Stack []string
}

// ReadSamples reads what `perf script -F pid,ip,sym` prints, and hands each sample to each. The stack is good until each
// returns.
func ReadSamples(from io.Reader, each func(Sample)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var s Sample
	for lines.Scan() {
		line := lines.Text()
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			if s.PID > 0 {
				each(s)
			}
			s = Sample{Stack: s.Stack[:0]}
		case s.PID == 0:
			first, _, _ := strings.Cut(text, " ")
			pid, err := strconv.Atoi(strings.TrimSuffix(first, ":"))
			if err != nil {
				return fmt.Errorf("a sample of perf begins with %q", first)
			}
			s.PID = max(pid, -1)
			if pid == 0 { // idle
				s.PID = -1
			}
		default:
			_, name, _ := strings.Cut(text, " ")
			s.Stack = append(s.Stack, strings.TrimSpace(name))
		}
	}
	if s.PID > 0 {
		each(s)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the samples of perf: %w", err)
	}
	return nil
}

// Work is a line of the budget: a kind of work of a program, and how the names of its functions begin.
type Work struct {
	Name  string
	Names []string
}

// Rest is the line of samples that no other line takes.
const Rest = "other"

// WorkOf gives the line of a stack: that of the innermost function that has one.
func WorkOf(works []Work, stack []string) string {
	for _, name := range stack {
		for _, w := range works {
			if slices.ContainsFunc(w.Names, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				return w.Name
			}
		}
	}
	return Rest
}

// WorkerWorks are the lines of Docket's worker, in the order in which a decision meets them.
func WorkerWorks() []Work {
	const store = "docket/internal/postgres/store."
	return []Work{
		{"collect and allocate memory", []string{
			"runtime.gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.sweep", "runtime.(*sweep", "runtime.(*mspan).sweep", "runtime.(*mheap)", "runtime.mallocgc",
			"runtime.scan", "runtime.greyobject", "runtime.wb", "runtime.bulkBarrier", "runtime.deductSweepCredit", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "gcWriteBarrier",
		}},
		{"inflate", []string{"github.com/pierrec/lz4", "docket/internal/kafka.(*inflater)", "docket/internal/kafka.weigh", "docket/internal/kafka.headers", "docket/internal/kafka.lz4"}},
		{"split into records", []string{
			"github.com/twmb/franz-go/pkg/kgo.(*ProcessFetchPartitionOpts)", "github.com/twmb/franz-go/pkg/kgo.ProcessFetch", "github.com/twmb/franz-go/pkg/kgo.(*cursorOffsetNext)",
			"github.com/twmb/franz-go/pkg/kgo.(*Record)", "github.com/twmb/franz-go/pkg/kgo.(*recordPools)", "docket/internal/kafka.(*spare)", "docket/internal/kafka.(*slabs", "hash/crc32",
		}},
		{"fetch", []string{"github.com/twmb/franz-go", "docket/internal/kafka.(*plain", "docket/internal/kafka.(*dial"}},
		{"queue and commit", []string{"docket/internal/kafka.", "docket/internal/record/home.(*Account)"}},
		{"hash", []string{"crypto/sha256", "crypto/internal/fips140/sha256", "docket/internal/record/decision.(*Log).KeepSum", "docket/internal/record/decision.(*Log).Sum"}},
		{"scan", []string{"docket/internal/record/decision."}},
		{"sort", []string{store + "order", store + "(*sorter)", store + "commonPrefix", store + "compareRows", store + "sameIdentity", store + "keyOf"}},
		{"encode", []string{store + "wholeRow", store + "append", store + "(*copyReader)", store + "(*window)", store + "uploader"}},
		{"send, and read answers", []string{store, "github.com/jackc/pgx", "docket/internal/postgres/db."}},
		{"carry, settle, report", []string{"docket/"}},
		{"schedule, sleep, wake", []string{
			"runtime.mcall", "runtime.mstart", "runtime.schedule", "runtime.findRunnable", "runtime.sysmon", "runtime.netpoll", "runtime.futex", "runtime.park", "runtime.gopark", "runtime.goready", "runtime.ready",
			"runtime.wakep", "runtime.notewakeup", "runtime.startm", "runtime.stopm", "runtime.exitsyscall", "runtime.entersyscall", "runtime.reentersyscall", "runtime.goexit0", "runtime.gosched",
		}},
	}
}

// PostgresWorks are the lines of the server. Debian's Postgres keeps no frame pointers. So outside the kernel only the
// innermost function is sure. It has the names of exported functions alone: a function of a file counts as the exported
// one before it.
func PostgresWorks() []Work {
	return []Work{
		{"commit and write the log", []string{
			"XLog", "xlog", "pg_comp_crc32c", "CopyXLogRecord", "GetXLogBuffer", "AdvanceXLInsertBuffer", "WALInsert", "ReserveXLog", "WaitXLog", "pg_pwrite", "ksys_pwrite", "__x64_sys_pwrite64", "__x64_sys_fdatasync", "do_fsync",
			"__x64_sys_fsync", "issue_xlog_fsync", "pg_fsync", "CommitTransaction", "RecordTransactionCommit", "GenericXLog", "log_newpage",
		}},
		{"receive", []string{"__x64_sys_recvfrom", "__sys_recvfrom", "secure_read", "be_tls_read", "pq_get", "pq_recv", "pq_copymsg", "pq_start", "pq_peek", "pq_end", "CopyGetData", "recv", "__libc_recv", "__x64_sys_epoll", "WaitEventSet", "__x64_sys_sendto", "send", "internal_flush", "socket_"}},
		{"parse JSON", []string{
			"json", "JsonLex", "pg_parse_json", "parse_", "IsValidJsonNumber", "jsonb", "Jsonb", "pushJsonb", "JsonbValue", "convertJsonb", "lengthCompareJsonb", "reserveFromBuffer", "numeric", "set_var", "make_result", "strtoint",
			"pg_utf8", "pg_verify", "pg_utf_mblen", "pg_encoding", "pg_wchar", "pg_mblen", "pg_any_to_server", "pg_client_to_server", "enlargeStringInfo", "appendBinaryStringInfo", "appendStringInfo", "makeStringInfo", "initStringInfo", "resetStringInfo", "qsort_arg", "qunique",
		}},
		{"parse other columns, build the row", []string{
			"CopyReadBinary", "CopyReadAttribute", "NextCopyFrom", "BeginCopyFrom", "CopyFrom", "DoCopy", "textrecv", "timestamptz_recv", "int4recv", "int8recv", "boolrecv", "bytearecv", "ReceiveFunctionCall", "FunctionCall", "InputFunctionCall",
			"heap_form", "heap_compute", "heap_fill", "fill_val", "tts_", "Exec", "slot_", "partition", "get_partition", "FormPartition", "datum", "toast", "cstring_to_text", "make_tuple",
		}},
		{"insert into the identity index", []string{"_bt_", "bt", "varstr", "bpchar", "text_cmp", "bttext", "strcoll", "__strcoll", "__strcmp", "strncoll", "pg_strcoll", "pg_strncoll", "timestamp_cmp", "timestamptz_cmp", "index_form", "index_insert", "index_deform", "FormIndexDatum", "nocache_index", "index_get", "index_"}},
		{"insert into BRIN", []string{"brin", "bloom", "hash_any", "hash_bytes", "minmax", "inclusion"}},
		{"insert into the table", []string{"heap", "PageAdd", "PageIndex", "PageInit", "PageGet", "RelationGetBuffer", "RelationPut", "RelationAdd", "GetPageWithFreeSpace", "RecordPageWith", "fsm_", "visibilitymap", "HeapTuple", "GetBulkInsert", "Release"}},
		{"find and extend buffers", []string{
			"ReadBuffer", "Buffer", "Pin", "Unpin", "MarkBuffer", "LockBuffer", "LWLock", "hash_search", "get_hash", "BufTable", "BufMapping", "Extend", "smgr", "md", "File", "__x64_sys_pread64", "ksys_pread", "__x64_sys_fallocate", "StrategyGet", "ResourceOwner", "CheckPoint", "SyncOneBuffer", "BgBuffer",
		}},
		{"memory", []string{"AllocSet", "MemoryContext", "palloc", "pfree", "repalloc", "asm_exc_page_fault", "exc_page_fault", "malloc", "__libc_malloc", "free", "GenerationAlloc", "BumpAlloc", "memcpy", "__memcpy", "__memmove", "__memset", "__mem"}},
	}
}

// Budget is how much processor time each kind of work of a program took.
type Budget struct {
	Who   string
	Whole time.Duration // of the program in the run, by the kernel's books
	Count map[string]int
	Works []Work
}

// Add counts a sample.
func (b *Budget) Add(stack []string) {
	if b.Count == nil {
		b.Count = map[string]int{}
	}
	b.Count[WorkOf(b.Works, stack)]++
}

// Table writes the shares of each program's own time, and the microseconds for one of so many decisions.
func Table(to io.Writer, decisions int, budgets ...Budget) {
	fmt.Fprint(to, "| who | work | share | µs a decision |\n|---|---|---|---|\n")
	for _, b := range budgets {
		all := 0
		for _, n := range b.Count {
			all += n
		}
		each := float64(b.Whole.Microseconds()) / float64(decisions)
		for _, name := range append(names(b.Works), Rest) {
			if n := b.Count[name]; n > 0 {
				share := float64(n) / float64(all)
				fmt.Fprintln(to, cells(b.Who, name, fmt.Sprintf("%.0f %%", share*100), fmt.Sprintf("%.2f", share*each)))
			}
		}
		fmt.Fprintln(to, cells("**"+b.Who+"**", "all", "", fmt.Sprintf("**%.2f**", each)))
	}
}

func names(works []Work) (all []string) {
	for _, w := range works {
		all = append(all, w.Name)
	}
	return all
}
