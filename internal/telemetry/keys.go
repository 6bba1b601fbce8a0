package telemetry

// Keys of log lines. Messages are constant; whatever varies stands under one of these.
const (
	KeyProgram    = "program"
	KeyVersion    = "version"
	KeyInstance   = "instance"
	KeyTopic      = "topic"
	KeyPartition  = "partition"
	KeyPartitions = "partitions"
	KeyGroup      = "group"
	KeyAddr       = "addr"
	KeyRecords    = "records"
	KeyCodes      = "codes"
	KeyIDs        = "dead_letter_ids"
	KeyClass      = "class"
	KeyCode       = "code"
	KeyName       = "name"
	KeyReason     = "reason"
	KeyHint       = "hint"
	KeyTook       = "took"
	KeyStacks     = "stacks"
	KeyVariable   = "variable"
	KeyApplied    = "applied"
	KeyMade       = "made"
	KeyDir        = "dir"
)
