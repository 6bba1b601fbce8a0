-- Takes rows from two buckets: that of all lanes (KEYS[1]) and that of the low lanes (KEYS[2]). Both have one hash tag,
-- so that they are on one node of a cluster. A bucket has its tokens in millionths of a row, the time of that, and the
-- limit in rows a second. A limit in rows a second is also one in millionths a microsecond, so every number is whole
-- and below 2^53: nothing is rounded.
--
-- ARGV: rows wanted, the least of them, 1 for a low lane, limit, low limit, burst; then from, to and low limit of each
-- entry of the calendar, in hours of the server's clock.
-- A call for 0 rows takes nothing, and tries whether the server can count.
-- Returns: rows granted, milliseconds to wait if that is 0, the low limit in force, the server's time in microseconds.

local time = redis.call('TIME')
local seconds, now = tonumber(time[1]), time[1] * 1000000 + time[2]
local wanted, least, low = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local limits, burst = {tonumber(ARGV[4]), tonumber(ARGV[5])}, tonumber(ARGV[6])
least = math.max(1, math.min(least, wanted, burst))

local hour = math.floor(seconds / 3600) % 24
for i = 7, #ARGV, 3 do
	local from, to = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
	if from < to and from <= hour and hour < to or from >= to and (hour >= from or hour < to) then
		limits[2] = tonumber(ARGV[i + 2])
	end
end

local full, buckets = burst * 1000000, low and 2 or 1
local tokens, at, granted = {}, {}, wanted
for i = 1, buckets do
	-- A bucket that is not known starts empty. It may have been full or spent; only empty breaks no promise.
	local was = redis.call('HMGET', KEYS[i], 'tokens', 'at', 'limit')
	tokens[i], at[i] = tonumber(was[1] or 0), tonumber(was[2] or now)
	-- Before a change of the limit the lower one counts, so that a change brings no tokens.
	local limit = math.min(limits[i], tonumber(was[3] or limits[i]))
	-- A clock that was set back brings no tokens, and none for a second time as it passes the same times again.
	-- After more than a second nobody waits for that.
	local since = now - at[i]
	if since > 0 or since < -1000000 then
		at[i] = now
	end
	since = math.max(0, math.min(since, math.ceil(full / limit)))
	tokens[i] = math.min(full, tokens[i] + since * limit)
	granted = math.min(granted, math.floor(tokens[i] / 1000000))
end

local wait = 0
if granted < least then
	granted = 0
	for i = 1, buckets do
		wait = math.max(wait, math.ceil((least * 1000000 - tokens[i]) / (limits[i] * 1000)))
	end
	wait = math.max(1, wait)
end
for i = 1, buckets do
	redis.call('HSET', KEYS[i], 'tokens', string.format('%.0f', tokens[i] - granted * 1000000),
		'at', string.format('%.0f', at[i]), 'limit', string.format('%.0f', limits[i]))
	redis.call('EXPIRE', KEYS[i], 3600) -- an idle bucket is forgotten, and starts empty
end
return {granted, wait, limits[2], now}
