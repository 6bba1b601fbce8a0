-- Open dead letters of a span of time are counted by an index: each answer about that time says how many there are.

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_decided;
CREATE INDEX CONCURRENTLY dead_letters_decided ON dead_letters (decision_ts, path) WHERE state <> 'RESOLVED';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_decided;
