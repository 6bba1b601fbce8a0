SELECT path, count(*) AS denials, count(DISTINCT subject), min(micros), max(micros)
  FROM decisions
 WHERE verdict = 'denied' AND path IS NOT NULL
 GROUP BY path
 ORDER BY denials DESC, path
 LIMIT 10
