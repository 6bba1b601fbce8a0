package chaos

// Kinds that a short campaign with lanes has.
const (
	LaneUnread   = "lane cannot be read"
	RedisRefused = "Redis: refused"
	RedisKilled  = "Redis killed"
)

// awayKinds are the faults while which no call of Redis succeeds.
var awayKinds = []string{RedisRefused, RedisKilled, redisPaused, redisReadOnly, redisFull, redisDark, redisLate}

const (
	redisPaused   = "Redis paused"
	redisReadOnly = "Redis read-only"
	redisFull     = "Redis out of memory"
	redisForgets  = "Redis forgets again and again"
	redisDark     = "Redis: black hole"
	redisLate     = "Redis: latency"
	redisReset    = "Redis: connections reset"
)

// laneKinds are the faults of a campaign with lanes: one lane alone, and Redis that counts the limits.
func laneKinds() []Kind {
	server, wire := all("redis"), all("redis wire")
	const g, to = "Redis", "wire to Redis"
	return []Kind{
		// A target is a lane and the broker that leads it meanwhile.
		{LaneUnread, "lane", seconds(6), seconds(15), laneCount * Brokers, func(target int) []string {
			return append(each("broker wire")(target%Brokers), "brokers", "leaders")
		}},
		{RedisKilled, g, seconds(5), seconds(16), 1, server}, // it is empty then
		{redisPaused, g, seconds(5), seconds(16), 1, server},
		{redisReadOnly, g, seconds(8), seconds(16), 1, server},
		{redisFull, g, seconds(8), seconds(16), 1, server},
		{redisForgets, g, seconds(3), seconds(10), 1, server},
		{RedisRefused, to, seconds(5), seconds(18), 1, wire},
		{redisDark, to, seconds(5), seconds(18), 1, wire},
		{redisLate, to, seconds(5), seconds(16), 1, wire},
		{redisReset, to, seconds(3), seconds(10), 1, wire},
	}
}
