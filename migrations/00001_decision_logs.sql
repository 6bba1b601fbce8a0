-- The table is created in the first schema of the connection's search_path, as any unqualified name is.

-- +goose Up
CREATE TABLE decision_logs (
    decision_id      text        NOT NULL,
    ts               timestamptz NOT NULL,
    path             text,
    allowed          boolean,
    requested_by     text,
    req_id           bigint,
    opa_id           text,
    opa_version      text,
    service          text,
    labels           jsonb,
    bundles          jsonb,
    raw              jsonb       NOT NULL,
    source_topic     text        NOT NULL,
    source_partition int         NOT NULL,
    source_offset    bigint      NOT NULL,
    source_index     int         NOT NULL,
    stored_at        timestamptz NOT NULL DEFAULT now(),

    -- The identity of a decision. decision_id leads, so that this one index also answers a look-up by decision_id;
    -- ts is part of it, so that the table can become one of range partitions by ts without losing it.
    PRIMARY KEY (decision_id, ts)
);

-- Every further B-tree is paid for by every row that is written. BRIN costs the writer next to nothing, and rows come
-- in nearly in the order of their time: enough for "the last hour" and for what retention deletes. Indexes on service,
-- path or into raw are for those who ask such questions to add; Docket does not mind them.
CREATE INDEX decision_logs_ts_brin ON decision_logs USING brin (ts);

COMMENT ON TABLE decision_logs IS 'OPA decisions, each stored once: identity is (decision_id, ts)';
COMMENT ON COLUMN decision_logs.raw IS 'the whole decision';
COMMENT ON COLUMN decision_logs.allowed IS 'result where boolean, else result.allow or result.allowed; NULL is undefined, not a deny';
COMMENT ON COLUMN decision_logs.source_index IS 'place inside its Kafka record, from 0';

-- +goose Down
DROP TABLE decision_logs;
