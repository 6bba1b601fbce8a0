-- Dead letters are found by the decision_id that they claim. A hash takes ids of any length. One that a break left unfinished is
-- made again.

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_decision;
CREATE INDEX CONCURRENTLY dead_letters_decision ON dead_letters USING hash (decision_id) WHERE decision_id IS NOT NULL;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_decision;
