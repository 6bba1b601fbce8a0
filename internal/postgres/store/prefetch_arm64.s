#include "textflag.h"

// func prefetch(at unsafe.Pointer, bytes int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVD at+0(FP), R0
	MOVD bytes+8(FP), R1
more:
	PRFM (R0), PLDL1KEEP
	ADD $64, R0
	SUBS $64, R1
	BGT more
	RET
