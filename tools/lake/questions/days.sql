SELECT CAST(day AS string), count(*), sum(source_offset), min(decision_id), max(decision_id)
  FROM decisions
 GROUP BY day
