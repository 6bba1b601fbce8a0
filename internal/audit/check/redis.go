package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docket/internal/redis"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// leastRedis is the first major version that replicates what a script did, not the script: it may read the clock.
const leastRedis = 5

// skewed is how far the clock of Redis may be away from ours. It decides when hours of the calendar begin.
const skewed = time.Second

// limits checks the Redis that counts the limits, if the settings name one.
func limits(ctx context.Context, s config.Settings) []Result {
	if s.RedisURL == "" {
		return nil
	}
	server, err := redis.Look(ctx, app.Redis(s), s.KafkaGroup)
	return judgeRedis(s, server, err)
}

func judgeRedis(s config.Settings, server *redis.Server, err error) []Result {
	r := report{what: "redis"}
	if inTheOpen(s.RedisURL.Reveal()) {
		r.add(Warn, "the password crosses the network unencrypted", "write rediss:// in DOCKET_REDIS_URL, and let Redis listen with TLS")
	}
	if err != nil {
		detail, hint := "it cannot be used", "check DOCKET_REDIS_URL"
		if fault, ok := errors.AsType[*redis.FaultError](err); ok {
			detail, hint = "it does not count: "+fault.Code, hintOf(fault.Code)
		}
		if !s.Limited() {
			r.add(Warn, detail+"; claims of archived days are in Postgres until it answers", hint)
			return r.all
		}
		r.add(Fail, detail+"; the low lanes wait, and so do replays and restores", hint)
		return r.all
	}
	if server.Role == "slave" { // a server that hides its role has just counted a row
		r.add(Fail, "it is a replica", "name the master in DOCKET_REDIS_URL")
	}
	if major, _, _ := strings.Cut(server.Version, "."); major != "" {
		if n, err := strconv.Atoi(major); err == nil && n < leastRedis {
			r.add(Fail, "version "+server.Version+" is too old", fmt.Sprintf("use Redis %d or later; Docket is tested with 7", leastRedis))
		}
	}
	if server.Cluster != "" && server.Cluster != "ok" {
		r.add(Fail, "the state of its cluster is "+server.Cluster, "run: redis-cli --cluster check")
	}
	if server.Policy != "noeviction" && server.Policy != "" {
		r.add(Warn, "maxmemory-policy is "+server.Policy+": a bucket that is evicted starts empty, and writes wait for it", "set maxmemory-policy noeviction, or use a Redis of its own")
	}
	if server.Ahead.Abs() > skewed {
		r.add(Warn, fmt.Sprintf("its clock is %v ahead of this machine's", server.Ahead.Round(time.Millisecond)), "synchronize the clocks; hours of DOCKET_LIMIT_CALENDAR are those of Redis")
	}
	if server.Took > redis.Deadline/2 {
		r.add(Warn, fmt.Sprintf("a call takes %v, and one of more than %v fails", server.Took.Round(time.Millisecond), redis.Deadline), "use a Redis that is near")
	}
	return r.results(fmt.Sprintf("version %s, a call takes %v", server.Version, server.Took.Round(10*time.Microsecond)))
}

// hintOf returns advice by the code of a fault.
func hintOf(code string) string {
	switch code {
	case "WRONGPASS", "NOAUTH":
		return "check user and password in DOCKET_REDIS_URL, or the file of DOCKET_REDIS_URL_FILE"
	case "NOPERM":
		return "grant the user what docs/security.md lists"
	case "READONLY":
		return "name the master in DOCKET_REDIS_URL"
	case "MOVED", "CROSSSLOT":
		return "it is a node of a cluster: name more nodes with addr, like redis://host1:6379?addr=host2:6379"
	case "CLUSTERDOWN":
		return "run: redis-cli --cluster check"
	case "OOM":
		return "raise maxmemory, or use a Redis of its own; the buckets take less than a kilobyte"
	case "tls":
		return "Redis shows a certificate that this machine does not trust"
	}
	return "check DOCKET_REDIS_URL, and whether Redis runs and can be reached from here"
}

// inTheOpen reports whether a URL sends a password to another machine without TLS.
func inTheOpen(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" || u.User == nil {
		return false
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() || u.Hostname() == "localhost" {
		return false
	}
	_, has := u.User.Password()
	return has
}
