SELECT subject, count(*), min(micros), max(micros)
  FROM (SELECT subject, micros, verdict,
               lag(verdict) OVER (PARTITION BY subject, path ORDER BY micros, decision_id) AS before
          FROM decisions
         WHERE subject IS NOT NULL) AS each
 WHERE verdict <> before
 GROUP BY subject
