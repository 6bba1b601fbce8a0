-- How many decisions of each path and verdict each hour had, of those that were stored before the mark. Lines are only added
-- and summed up, by the desk: the rates of a month are answered from these, and outlive the days that were archived.

-- +goose Up
CREATE TABLE decision_counts (
    hour      timestamptz NOT NULL, -- of ts, in UTC
    path      text,
    service   text,
    allowed   bigint NOT NULL,
    denied    bigint NOT NULL,
    undefined bigint NOT NULL,
    error     bigint NOT NULL,
    other     bigint NOT NULL
);
CREATE INDEX decision_counts_hour ON decision_counts (hour);

-- The same by day: a month by the day is some thousand lines instead of a hundred thousand. Whoever adds to one adds to both.
CREATE TABLE decision_counts_days (
    day       timestamptz NOT NULL, -- of ts, in UTC
    path      text,
    service   text,
    allowed   bigint NOT NULL,
    denied    bigint NOT NULL,
    undefined bigint NOT NULL,
    error     bigint NOT NULL,
    other     bigint NOT NULL
);
CREATE INDEX decision_counts_days_day ON decision_counts_days (day);

CREATE TABLE decision_counts_mark (
    stored_before timestamptz NOT NULL, -- what was stored before is counted, and nothing else
    one           boolean     PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO decision_counts_mark (stored_before) VALUES ('-infinity');

COMMENT ON TABLE decision_counts IS 'verdicts of decisions by hour, path and service, as far as they are counted: see decision_counts_mark';
COMMENT ON TABLE decision_counts_days IS 'what decision_counts has, by day';

-- +goose Down
DROP TABLE decision_counts;
DROP TABLE decision_counts_days;
DROP TABLE decision_counts_mark;
