-- Begins, keeps or ends a claim (KEYS[1]): its version, 1 if it is of high priority, and the time of the server's clock at
-- which it is over, in microseconds. Times and versions are below 2^53, so nothing is rounded.
--
-- ARGV: begin, 1 for high priority, lease; or keep, version, lease; or end, version, 0. Leases are in microseconds.
-- Returns: the version of the caller's claim, or 0 if another claim holds, or if its own was over before.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local was = redis.call('HMGET', KEYS[1], 'version', 'high', 'until')
local version, holds = tonumber(was[1] or 0), tonumber(was[3] or 0) > now
if ARGV[1] == 'begin' then
	if holds and (was[2] == '1' or ARGV[2] == '0') then
		return 0
	end
	-- A server that lost its data begins with its time, which is above all versions that it gave.
	version = math.max(version + 1, now)
	redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version), 'high', ARGV[2])
elseif not holds or version ~= tonumber(ARGV[2]) then
	return 0
end
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + tonumber(ARGV[3])))
redis.call('EXPIRE', KEYS[1], 86400) -- a key of yesterday is forgotten; the time is above its version by then
return version
