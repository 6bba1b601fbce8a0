package db

import "strings"

// A row of an earlier release can have numbers that take far more text than bytes: 40,000 times 1e30000 is 1.2 GB. Nobody can
// read such a payload, and to try costs the server that memory. This release stores none (see [decision.Unfaithful]) and its rows have
// a hash, so only rows without one are looked into.
const (
	// UnreadableSQL says whether the numbers of a row d take more than 1 MiB beyond what they take in jsonb. The digits before the point
	// are estimated from above.
	UnreadableSQL = `CASE WHEN d.raw_sha256 IS NULL THEN ` + ExpandsSQL + ` ELSE false END`

	// ExpandsSQL is UnreadableSQL for a row that may have a hash.
	ExpandsSQL = `(SELECT coalesce(sum(CASE WHEN scale(n) > 100 THEN scale(n) ELSE 0 END
		+ CASE WHEN abs(n) < 1e100 THEN 0 WHEN abs(n) < 1e1000 THEN 1000 WHEN abs(n) < 1e10000 THEN 10000 WHEN abs(n) < 1e50000 THEN 50000 ELSE 131072 END), 0) > 1048576
	FROM (SELECT v::numeric AS n FROM jsonb_path_query(d.raw, 'strict $.** ? (@.type() == "number")') AS v OFFSET 0) AS numbers)`

	// twinSQL is the text of a value of jsonb in which such numbers are strings, as in a twin: 1e30000 is "1e30000". It follows the value
	// from the start to the end and needs no more memory than the largest number. Tokens are in the order of their places; the one that
	// closes a container comes behind all that is in it.
	twinSQL = `(WITH RECURSIVE inside(at, label, v) AS (
	SELECT '{}'::int[], '', d.VALUE
	UNION ALL
	SELECT at || e.n::int, e.label, e.v FROM inside, LATERAL (
		SELECT n, to_json(key)::text || ': ' AS label, value AS v
		  FROM jsonb_each(CASE WHEN jsonb_typeof(inside.v) = 'object' THEN inside.v ELSE '{}' END) WITH ORDINALITY AS o(key, value, n)
		UNION ALL
		SELECT n, '', value FROM jsonb_array_elements(CASE WHEN jsonb_typeof(inside.v) = 'array' THEN inside.v ELSE '[]' END) WITH ORDINALITY AS a(value, n)) AS e)
	SELECT string_agg(token, '' ORDER BY at) FROM (
		SELECT at, CASE WHEN at[cardinality(at)] > 1 THEN ', ' ELSE '' END || label || CASE jsonb_typeof(v) WHEN 'object' THEN '{' WHEN 'array' THEN '['
			WHEN 'number' THEN (SELECT CASE WHEN abs(n) < 1e100 AND scale(n) <= 100 THEN n::text WHEN n = 0 THEN '"0e-' || scale(n) || '"'
				ELSE '"' || CASE WHEN n < 0 THEN '-' ELSE '' END || trim(BOTH '0' FROM digits)
					|| 'e' || 4 * (weight - CASE WHEN weight > 32767 THEN 65536 ELSE 0 END + 1) - length(rtrim(digits, '0')) || '"' END
				FROM (SELECT n, (get_byte(b, 2) << 8 | get_byte(b, 3)) AS weight, (
						SELECT string_agg(lpad((get_byte(b, i) << 8 | get_byte(b, i + 1))::text, 4, '0'), '' ORDER BY i) FROM generate_series(8, length(b) - 2, 2) AS i) AS digits
					FROM (SELECT v::numeric AS n, numeric_send(v::numeric) AS b OFFSET 0) AS sent OFFSET 0) AS number)
			ELSE v::text END AS token FROM inside
		UNION ALL
		SELECT at || 2147483647, CASE jsonb_typeof(v) WHEN 'object' THEN '}' ELSE ']' END FROM inside WHERE jsonb_typeof(v) IN ('object', 'array')) AS tokens)`
)

// TwinOf is twinSQL for a column, whose name is quoted.
func TwinOf(ident string) string { return strings.ReplaceAll(twinSQL, "VALUE", ident) }
