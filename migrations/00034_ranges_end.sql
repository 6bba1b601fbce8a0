-- A range of dead letters that is archived has none that came to Kafka later. Where their topic is deleted and made again, its offsets
-- mean other records, and those were taken for the archived ones. The rest of dead_letters_admit stays as 00015 has it.

-- +goose Up
-- +goose StatementBegin
DO $do$
DECLARE
    was    CONSTANT text := 's.archived_from <= places[f.at]))';
    is_now CONSTANT text := 's.archived_from <= places[f.at] AND s.last_at >= stamps[f.at]))';
    admit  text := (SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND proname = 'dead_letters_admit');
BEGIN
    IF position(is_now IN admit) > 0 THEN
        RETURN;
    END IF;
    IF position(was IN admit) = 0 THEN
        RAISE 'dead_letters_admit is not as docket made it';
    END IF;
    EXECUTE replace(admit, was, is_now);
END $do$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $do$
BEGIN
    EXECUTE (SELECT replace(pg_get_functiondef(oid), ' AND s.last_at >= stamps[f.at]))', '))')
               FROM pg_proc WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND proname = 'dead_letters_admit');
END $do$;
-- +goose StatementEnd
