SELECT method, count(*)
  FROM decisions
 WHERE day = (SELECT max(day) FROM decisions)
 GROUP BY method
