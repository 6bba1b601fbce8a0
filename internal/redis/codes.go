package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// codeOf names a failure in one word, without text of the server beyond its code.
func codeOf(err error) string {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return replyCode(reply.Error())
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "tls"
	}
	if fault, ok := errors.AsType[net.Error](err); ok && fault.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused"
	}
	return "network"
}

// replyCode returns the code at the beginning of an error reply: OOM, READONLY, NOAUTH and so on.
func replyCode(reply string) string {
	code, _, _ := strings.Cut(reply, " ")
	if code == "" || len(code) > 16 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return code
}
