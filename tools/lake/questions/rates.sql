SELECT path, substring(CAST(day AS string), 1, 7) AS month, count(*), sum(CASE WHEN verdict = 'denied' THEN 1 ELSE 0 END)
  FROM decisions
 GROUP BY path, month
